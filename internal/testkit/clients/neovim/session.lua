-- A session in Neovim, in the directory of an agent: argument 1 is the file with the configuration of the server, as people copy it,
-- argument 2 the command of the server. It writes one line for each thing that it has seen, and stops at the first that is wrong.
local config = dofile(arg_config)
config.cmd = arg_command
vim.lsp.config('raddle', config)
vim.lsp.enable('raddle')

local function say(...) io.stdout:write(table.concat({ ... }, ' ') .. '\n') end

local function wait_for(what, condition)
  if not vim.wait(20000, condition, 20) then
    say('FAILED: ' .. what)
    for _, d in ipairs(vim.diagnostic.get(nil)) do say(d.message) end
    vim.cmd('cquit 1')
  end
  say(what)
end

-- findings are those of the buffer that are not about a model, which this machine has not.
local function findings()
  return vim.tbl_filter(function(d) return not d.message:find('model') end, vim.diagnostic.get(0))
end

local function at(text)
  vim.fn.cursor(1, 1)
  if vim.fn.search(text, 'W') == 0 then
    say('FAILED: no ' .. text)
    vim.cmd('cquit 1')
  end
end

local function request(method, more)
  local params = vim.tbl_extend('force', vim.lsp.util.make_position_params(0, 'utf-16'), more or {})
  local client = vim.lsp.get_clients({ bufnr = 0 })[1]
  local answer = client:request_sync(method, params, 10000, 0)
  if not answer or answer.err then
    say('FAILED: ' .. method .. ' ' .. vim.inspect(answer))
    vim.cmd('cquit 1')
  end
  return answer.result
end

vim.cmd('edit graph.yaml')
wait_for('the server is attached', function() return #vim.lsp.get_clients({ bufnr = 0 }) == 1 end)

at('next: draft')
vim.cmd('normal! $x')
wait_for('a wrong node is found while typing', function() return #findings() > 0 end)
local actions = request('textDocument/codeAction', {
  range = { start = { line = findings()[1].lnum, character = 0 }, ['end'] = { line = findings()[1].lnum, character = 99 } },
  context = { diagnostics = { findings()[1].user_data.lsp } },
})
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
wait_for('the correction mends it', function() return #findings() == 0 end)

local labels = {}
at('{{outline')
vim.cmd('normal! 2l')
for _, item in ipairs(request('textDocument/completion').items) do labels[item.label] = true end
wait_for('keys of the state are proposed', function() return labels.outline and labels.topic end)

at('outline}}')
local hover = request('textDocument/hover')
wait_for('the hover says where the key is set', function() return hover.contents.value:find('set by `plan`, `sketch`', 1, true) ~= nil end)

at('next: draft')
vim.cmd('normal! 6l')
local place = request('textDocument/definition')
wait_for('the definition of a node is found', function() return vim.fn.getline(place[1].range.start.line + 1) == '  draft:' end)
wait_for('references are found', function() return #request('textDocument/references', { context = { includeDeclaration = true } }) == 6 end)
wait_for('the outline has the nodes', function()
  for _, s in ipairs(request('textDocument/documentSymbol')) do
    if s.name == 'nodes' then return #s.children == 4 end
  end
end)

at('outline}}')
vim.lsp.buf.rename('plot')
wait_for('a key is renamed', function() return vim.fn.search('outline', 'nw') == 0 end)
at('next: draft')
vim.cmd('normal! 6l')
vim.lsp.buf.rename('write')
wait_for('a node is renamed', function() return vim.fn.search('draft', 'nw') == 0 end)

at('next: write')
vim.cmd('substitute/next: /next:     /')
vim.lsp.buf.format({ async = false })
wait_for('the file is laid out', function() return vim.fn.search('next:  ', 'nw') == 0 end)
wait_for('nothing is wrong', function() return #findings() == 0 end)
vim.cmd('silent wall')
vim.cmd('edit other.yaml')
wait_for('other files have no server', function() return #vim.lsp.get_clients({ bufnr = 0 }) == 0 end)
vim.lsp.stop_client(vim.lsp.get_clients())
wait_for('the server ends', function() return #vim.lsp.get_clients() == 0 end)
vim.cmd('qall!')
