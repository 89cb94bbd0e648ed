-- eagle-assist for Neovim: ghost text from `eagle-assist lsp`.
--
--   require("eagle_assist").setup({ cmd = { "eagle-assist", "lsp" }, settings = { editor = { debounce_ms = 30 } } })
--
-- Neovim 0.12 shows inline completions by itself, so there this only starts the server and sets the keys. Neovim 0.11
-- has no such thing; this file asks for them, draws them as extmarks and inserts what is accepted.

local M = {}

local METHOD = "textDocument/inlineCompletion"
local NAMESPACE = vim.api.nvim_create_namespace("eagle_assist")
local DEFAULTS = {
  cmd = { "eagle-assist", "lsp" },
  root_markers = { ".eagle-assist.toml", ".git" },
  filetypes = nil, -- nil: every file
  settings = vim.empty_dict(), -- sections and keys as in config.toml
  highlight = "Comment",
  keys = { accept = "<Tab>", accept_word = "<M-Right>", accept_line = "<M-Down>", dismiss = "<C-]>" },
}

local options = DEFAULTS
local native = vim.lsp.inline_completion ~= nil
local shown = nil -- { buf, row, col, text, taken, item, client }: what stands at the cursor as ghost text
local pending = nil -- { client, id }: the request on its way
local told = nil -- the id of the last suggestion that the server was told is shown
local status = { state = "starting", message = "", why = "" }

--- What the server last said of itself: a table of state, message and why, for status lines.
function M.status()
  return status
end

--- The text that is shown now, or nil.
function M.visible()
  return shown and shown.text or nil
end

local function clear()
  if shown and vim.api.nvim_buf_is_valid(shown.buf) then
    vim.api.nvim_buf_clear_namespace(shown.buf, NAMESPACE, 0, -1)
  end
  shown = nil
end

local function cancel()
  if pending then
    pending.client:cancel_request(pending.id)
    pending = nil
  end
end

local function cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

local function draw()
  local lines = vim.split(shown.text, "\n", { plain = true })
  local below = {}
  for index = 2, #lines do
    below[#below + 1] = { { lines[index] == "" and " " or lines[index], options.highlight } }
  end
  vim.api.nvim_buf_clear_namespace(shown.buf, NAMESPACE, 0, -1)
  vim.api.nvim_buf_set_extmark(shown.buf, NAMESPACE, shown.row, shown.col, {
    virt_text = { { lines[1], options.highlight } },
    virt_text_pos = "inline",
    virt_lines = #below > 0 and below or nil,
    hl_mode = "combine",
  })
end

local function identity(item)
  return item.command and item.command.arguments and item.command.arguments[1]
end

--- Tell the server that an item is shown, once for each suggestion.
local function tell(client, item)
  local id = identity(item)
  if id and id ~= told then
    told = id
    client:notify("textDocument/didShowCompletion", { item = item })
  end
end

--- Show an item, if the cursor still stands where it belongs.
local function show(client, buf, item)
  local row, col = cursor()
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  local text = item.insertText:gsub("\r\n?", "\n")
  local start = item.range and item.range.start
  if start then
    if start.line ~= row then
      return
    end
    local from = vim.str_byteindex(line, client.offset_encoding, start.character, false)
    local typed = line:sub(from + 1, col)
    if from > col or text:sub(1, #typed) ~= typed then
      return
    end
    text = text:sub(#typed + 1)
  end
  if text ~= "" then
    shown = { buf = buf, row = row, col = col, text = text, taken = 0, item = item, client = client }
    draw()
    tell(client, item)
  end
end

--- Keep the ghost text in place while the user types along it; true where it still stands.
local function follow()
  local row, col = cursor()
  if shown.buf ~= vim.api.nvim_get_current_buf() or row ~= shown.row or col < shown.col then
    return false
  end
  local typed = vim.api.nvim_buf_get_text(shown.buf, row, shown.col, row, col, {})[1]
  if shown.text:sub(1, #typed) ~= typed or #typed == #shown.text then
    return false
  end
  if #typed > 0 then
    shown.text, shown.col, shown.taken = shown.text:sub(#typed + 1), col, shown.taken + #typed
    draw()
  end
  return true
end

local function server(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = "eagle-assist" })[1]
end

local function request(invoked)
  local buf = vim.api.nvim_get_current_buf()
  local client = server(buf)
  cancel()
  if not client then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = invoked and 1 or 2 }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local row, col = cursor()
  local ok, id = client:request(METHOD, params, function(problem, result)
    pending = nil
    local now_row, now_col = cursor()
    local here = buf == vim.api.nvim_get_current_buf()
      and tick == vim.api.nvim_buf_get_changedtick(buf)
      and row == now_row
      and col == now_col
      and vim.api.nvim_get_mode().mode:sub(1, 1) == "i"
    if problem or not here then
      return
    end
    clear()
    local items = result and (result.items or result) or {}
    if items[1] then
      show(client, buf, items[1])
    end
  end, buf)
  pending = ok and { client = client, id = id } or nil
end

local function update()
  if shown and not follow() then
    clear()
  end
  request(false)
end

--- Ask for a suggestion now, wherever the cursor is.
function M.trigger()
  if native then
    return vim.lsp.inline_completion.enable(true)
  end
  request(true)
end

local function insert(text)
  local row, col = cursor()
  local lines = vim.split(text, "\n", { plain = true })
  vim.bo.undolevels = vim.bo.undolevels -- one `u` takes back exactly what is inserted here
  vim.api.nvim_buf_set_text(0, row, col, row, col, lines)
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

local function execute(client, command)
  if command then
    client:request("workspace/executeCommand", { command = command.command, arguments = command.arguments }, function() end)
  end
end

--- Insert the first `length` bytes of what is shown, or all of it; false where nothing is.
local function take(length)
  if not shown then
    return false
  end
  cancel()
  local now = shown
  local text = now.text:sub(1, length or #now.text)
  if #text == #now.text then
    clear()
    insert(text)
    execute(now.client, now.item.command)
    return true
  end
  insert(text)
  now.row, now.col = cursor()
  now.text, now.taken = now.text:sub(#text + 1), now.taken + #text
  draw()
  local whole = now.item.insertText:gsub("\r\n?", "\n")
  now.client:notify("textDocument/didPartiallyAcceptCompletion", {
    item = now.item,
    acceptedLength = vim.str_utfindex(whole:sub(1, #whole - #now.text), "utf-16"),
  })
  return true
end

function M.accept()
  if native then
    return vim.lsp.inline_completion.get()
  end
  return take(nil)
end

function M.accept_word()
  local text = M.visible()
  return take(text and (select(2, text:find("^%s*[%w_\128-\255]+")) or select(2, text:find("^%s*[^%w_%s\128-\255]+")) or #text))
end

function M.accept_line()
  local text = M.visible()
  local stop = text and text:find("\n", 1, true)
  if stop == 1 then -- the rest of the line was taken already: now its end, and the next one
    stop = text:find("\n", 2, true)
  end
  return take(stop and stop - 1)
end

function M.dismiss()
  if not shown then
    return false
  end
  local item, client = shown.item, shown.client
  cancel()
  clear()
  local id = identity(item)
  if id then
    execute(client, { command = "eagle-assist.reject", arguments = { id } })
  end
  return true
end

local function start(buf)
  if vim.bo[buf].buftype ~= "" or (options.filetypes and not vim.tbl_contains(options.filetypes, vim.bo[buf].filetype)) then
    return
  end
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  capabilities.general.positionEncodings = { "utf-8", "utf-16", "utf-32" }
  vim.lsp.start({
    name = "eagle-assist",
    cmd = options.cmd,
    cmd_env = options.cmd_env,
    root_dir = vim.fs.root(buf, options.root_markers),
    capabilities = capabilities,
    init_options = options.settings,
    settings = { ["eagle-assist"] = options.settings },
    handlers = {
      ["eagle-assist/didChangeStatus"] = function(_, params)
        status = params
        vim.api.nvim_exec_autocmds("User", { pattern = "EagleAssistStatus", data = params })
      end,
    },
  }, { bufnr = buf })
  if native then
    vim.lsp.inline_completion.enable(true, { bufnr = buf })
  end
end

--- A key that does its usual thing where there is nothing to accept.
local function map(key, action)
  if key then
    vim.keymap.set("i", key, function()
      if not action() then
        vim.api.nvim_feedkeys(vim.keycode(key), "n", false)
      end
    end, { desc = "eagle-assist" })
  end
end

function M.setup(given)
  options = vim.tbl_deep_extend("force", DEFAULTS, given or {})
  local group = vim.api.nvim_create_augroup("eagle_assist", {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on({ "FileType", "BufReadPost", "BufNewFile" }, function(event)
    start(event.buf)
  end)
  map(options.keys.accept, M.accept)
  if not native then
    on({ "InsertEnter", "TextChangedI" }, update)
    on({ "LspAttach" }, function() -- the user may have typed before the server was there
      if vim.api.nvim_get_mode().mode:sub(1, 1) == "i" then
        request(false)
      end
    end)
    on({ "CursorMovedI" }, function()
      if shown and not follow() then
        clear()
      end
    end)
    on({ "InsertLeave", "BufLeave" }, function()
      cancel()
      clear()
    end)
    map(options.keys.accept_word, M.accept_word)
    map(options.keys.accept_line, M.accept_line)
    map(options.keys.dismiss, M.dismiss)
  end
  start(vim.api.nvim_get_current_buf())
end

return M
