;;; eagle-assist.el --- Code completion on your own machine -*- lexical-binding: t -*-

;; eglot:    (require 'eagle-assist) (eagle-assist-eglot)     then M-x eglot
;; lsp-mode: (require 'eagle-assist) (eagle-assist-lsp-mode)  then M-x lsp

;; eglot runs one server in a buffer, so with it eagle-assist takes the place of the language's own server; lsp-mode
;; runs it beside that one.

;;; Code:

(defgroup eagle-assist nil "Code completion on your own machine." :group 'tools)

(defcustom eagle-assist-command '("eagle-assist" "lsp")
  "The program that serves completions, and its arguments."
  :type '(repeat string))

(defcustom eagle-assist-settings nil
  "Settings as in config.toml, as a plist: (:editor (:debounce_ms 30))."
  :type 'plist)

(defcustom eagle-assist-modes '(prog-mode)
  "Major modes in which eglot uses eagle-assist."
  :type '(repeat symbol))

(defvar eglot-server-programs)
(declare-function lsp-register-client "lsp-mode")
(declare-function make-lsp-client "lsp-mode")
(declare-function lsp-stdio-connection "lsp-mode")

;;;###autoload
(defun eagle-assist-eglot ()
  "Let eglot use eagle-assist in `eagle-assist-modes'."
  (require 'eglot)
  (add-to-list 'eglot-server-programs
               (cons eagle-assist-modes
                     (append eagle-assist-command
                             (when eagle-assist-settings
                               (list :initializationOptions eagle-assist-settings))))))

;;;###autoload
(defun eagle-assist-lsp-mode ()
  "Let lsp-mode run eagle-assist beside a language's own server."
  (require 'lsp-mode)
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection (lambda () eagle-assist-command))
    :activation-fn (lambda (&rest _) t)
    :add-on? t
    :priority -1
    :server-id 'eagle-assist
    :initialization-options (lambda () eagle-assist-settings)
    :notification-handlers (let ((table (make-hash-table :test 'equal)))
                             (puthash "eagle-assist/didChangeStatus" #'ignore table)
                             table))))

(provide 'eagle-assist)
;;; eagle-assist.el ends here
