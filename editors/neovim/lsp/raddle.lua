-- The language server of raddle for Neovim 0.11 and later. Copy this file to ~/.config/nvim/lsp/raddle.lua and write
-- vim.lsp.enable('raddle') into init.lua.

-- agent_dir returns the directory of the agent to which a file belongs, or nil.
local function agent_dir(name)
  local base = vim.fs.basename(name)
  if base == 'graph.yaml' or base == 'config.yaml' then
    return vim.fs.dirname(name)
  end
  local found = vim.fs.find({ 'graph.yaml', 'config.yaml' }, { path = vim.fs.dirname(name), upward = true, limit = 1 })[1]
  local dir = found and vim.fs.dirname(found)
  if dir and (name:match('%.test%.yaml$') or vim.fs.basename(found) == 'graph.yaml' and not name:match('%.ya?ml$')) then
    return dir
  end
end

return {
  cmd = { 'raddle', 'lsp' },
  filetypes = { 'yaml', 'sh', 'bash', 'python', 'typescript' },
  -- Without a call of on_dir the server does not start: other files are none of its business.
  root_dir = function(buffer, on_dir)
    local dir = agent_dir(vim.api.nvim_buf_get_name(buffer))
    if dir then
      on_dir(vim.fs.root(buffer, { '.raddle', '.git' }) or dir)
    end
  end,
}
