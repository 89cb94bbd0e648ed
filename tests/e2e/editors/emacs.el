;;; emacs.el --- One completion in a real Emacs, printed as JSON -*- lexical-binding: t -*-

;; emacs --batch -l emacs.el CLIENT(eglot|lsp-mode) FILE PYTHON

;;; Code:

(require 'json)
(require 'package)
(package-initialize)

(defvar test-client (pop command-line-args-left))
(defvar test-file (pop command-line-args-left))
(defvar test-python (pop command-line-args-left))
(defvar test-deadline (+ (float-time) 60))

(add-to-list 'load-path (expand-file-name "../../../lsp/clients/emacs" (file-name-directory load-file-name)))
(require 'eagle-assist)
(setq eagle-assist-command
      (list test-python "-m" "tests.support.lsp_server" "--idle-exit" "20" "--steps" "1" "--size" "10")
      eagle-assist-settings '(:editor (:debounce_ms 0 :debounce_max_ms 0))
      enable-local-variables nil
      create-lockfiles nil
      backup-inhibited t)

(defun test-data ()
  "What completion at point has: a start, an end, a table, and properties."
  (cdr (run-hook-wrapped 'completion-at-point-functions #'completion--capf-wrapper 'all)))

(defun test-candidates (data)
  "The candidates of DATA, as front ends such as company and corfu get them."
  (and (consp data) (all-completions (buffer-substring (nth 0 data) (nth 1 data)) (nth 2 data))))

(defun test-accept (data candidate)
  "Insert CANDIDATE of DATA as such a front end does."
  (delete-region (nth 0 data) (point))
  (insert candidate)
  (funcall (plist-get (nthcdr 3 data) :exit-function) candidate 'finished))

(find-file test-file)
(prog-mode)
(pcase test-client
  ("eglot"
   (eagle-assist-eglot)
   (apply #'eglot (eglot--guess-contact)))
  ("lsp-mode"
   (setq lsp-session-file (expand-file-name "session" temporary-file-directory)
         lsp-auto-guess-root t lsp-enable-suggest-server-download nil lsp-keep-workspace-alive nil
         lsp-language-id-configuration '((prog-mode . "python")) lsp-warn-no-matched-clients nil)
   (eagle-assist-lsp-mode)
   (lsp)))

(goto-char (point-max))
(insert "tot")
(let (data found)
  (while (and (null found) (< (float-time) test-deadline))
    (accept-process-output nil 0.2)
    (setq data (ignore-errors (test-data))
          found (ignore-errors (test-candidates data))))
  (when found (test-accept data (car found)))
  (princ (json-encode `((editor . ,(emacs-version)) (candidates . ,(vconcat (mapcar #'substring-no-properties found)))
                         (text . ,(buffer-substring-no-properties (point-min) (point-max)))))))
(setq kill-buffer-query-functions nil)
(set-buffer-modified-p nil)
(kill-emacs 0)
