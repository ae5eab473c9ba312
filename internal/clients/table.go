package clients

// All returns the clients. Those that most people use come first.
//
// What the entries of the table are from: the programs themselves for Claude Code,
// Codex, Gemini CLI, Qwen Code and Copilot CLI, and the documentation of
// the others. Windsurf and Cursor document ${env:NAME} for headers, opencode {env:NAME},
// Kiro ${NAME}, GitHub ${NAME} for Copilot CLI. VS Code and Zed send such texts as they
// are (microsoft/vscode#336232, zed-industries/zed#60459). In headers, VS Code documents
// ${input:ID} alone, with an element of the list "inputs" for the ID. The documentation
// of Zed, Cline and LM Studio has the token itself in the header.
//
// Docs are pages of each program's maker; for Claude Desktop, the guide of the protocol,
// which explains this with that program. Links are those that the documentation of
// Cursor, VS Code, LM Studio, Goose and Kiro defines; that of the others has none for a
// server that runs.
func All() []*Client {
	restart := func(program string) string { return "Restart " + program + "." }
	const session = "Start a new session."
	return []*Client{
		{
			Name: "claude-code", Title: "Claude Code", Synonyms: []string{"claude"},
			Docs: "https://code.claude.com/docs/en/mcp",
			HTTP: true, Variable: "${%s}", Verb: claudeVerb(),
			Next: session, NextProject: "Claude Code asks you to approve the servers of a project.",
			NextToken: "Set the variable %s before you start Claude Code.",
			programs:  []string{"claude"}, folders: everywhere("$CLAUDE_CONFIG_DIR", "~/.claude", "~/.claude.json"),
			user:    everywhere("$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"),
			project: ".mcp.json", format: JSON, keys: []string{"mcpServers"}, local: true,
			shape: shape{stdio: "stdio", http: "http"},
		},
		{
			Name: "claude-desktop", Title: "Claude Desktop",
			Docs:    "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
			Window:  true,
			Instead: "Claude Desktop starts its servers itself: name the folder, which needs neither a URL nor a token.",
			Next:    "Quit Claude Desktop and start it again. The tools are behind the button with sliders below the text.",
			folders: places{
				linux:   []string{"$CONFIG/Claude"},
				macOS:   []string{"$CONFIG/Claude", "/Applications/Claude.app", "~/Applications/Claude.app"},
				windows: []string{"$CONFIG/Claude", "$LOCAL/AnthropicClaude"},
			},
			user:   everywhere("$CONFIG/Claude/claude_desktop_config.json"),
			format: JSON, keys: []string{"mcpServers"},
		},
		{
			Name: "vscode", Title: "VS Code", Synonyms: []string{"code", "vs-code", "visual-studio-code"},
			Docs: "https://code.visualstudio.com/docs/copilot/customization/mcp-servers", link: codeLink,
			HTTP: true, Window: true, Verb: codeVerb(),
			Instead: "VS Code reads no variables in headers, it asks for the token itself: name the folder, which needs no " +
				"token, or connect without --token-env, add \"headers\": {\"Authorization\": \"Bearer ${input:knowhow}\"} to the " +
				"entry, and \"inputs\": [{\"type\": \"promptString\", \"id\": \"knowhow\", \"description\": \"Token\", " +
				"\"password\": true}] beside \"servers\".",
			prompt: "${input:knowhow}", inputs: `  "inputs": [
    {
      "type": "promptString",
      "id": "knowhow",
      "description": "Token of knowhow",
      "password": true
    }
  ],
`,
			Next:        "In VS Code, open the chat in agent mode and approve the server; \"MCP: List Servers\" shows it.",
			NextProject: "VS Code asks whether you trust the server of a workspace.",
			programs:    []string{"code"},
			folders: places{
				linux:   []string{"$CONFIG/Code"},
				macOS:   []string{"$CONFIG/Code", "/Applications/Visual Studio Code.app"},
				windows: []string{"$CONFIG/Code", "$LOCAL/Programs/Microsoft VS Code"},
			},
			user:    everywhere("$CONFIG/Code/User/mcp.json"),
			project: ".vscode/mcp.json", format: JSON, keys: []string{"servers"},
			shape: shape{stdio: "stdio", http: "http"},
		},
		{
			Name: "cursor", Title: "Cursor",
			Docs: "https://cursor.com/docs/mcp", link: cursorLink,
			HTTP: true, Window: true, Variable: "${env:%s}",
			Next:      "Cursor loads the file by itself. If the tools are not in Settings, Tools & MCP, restart it.",
			NextToken: "Set the variable %s before you start Cursor, or for all programs.",
			programs:  []string{"cursor"},
			folders: places{
				linux:   []string{"~/.cursor"},
				macOS:   []string{"~/.cursor", "/Applications/Cursor.app"},
				windows: []string{"~/.cursor", "$LOCAL/Programs/cursor"},
			},
			user:    everywhere("~/.cursor/mcp.json"),
			project: ".cursor/mcp.json", format: JSON, keys: []string{"mcpServers"},
		},
		{
			Name: "codex", Title: "Codex", Synonyms: []string{"codex-cli"},
			Docs: "https://developers.openai.com/codex/mcp",
			HTTP: true, Variable: "%s", Verb: codexVerb(),
			Next: session, NextProject: "Codex reads the file of a project that you have told it to trust.",
			NextToken: "Set the variable %s before you start Codex.",
			programs:  []string{"codex"}, folders: everywhere("$CODEX_HOME", "~/.codex"),
			user:    everywhere("$CODEX_HOME/config.toml", "~/.codex/config.toml"),
			project: ".codex/config.toml", format: TOML, keys: []string{"mcp_servers"},
			shape: shape{token: "bearer_token_env_var"},
		},
		{
			Name: "gemini", Title: "Gemini CLI", Synonyms: []string{"gemini-cli"},
			Docs: "https://geminicli.com/docs/tools/mcp-server",
			HTTP: true, Variable: "${%s}", Verb: geminiVerb(),
			Next:      session + " Gemini CLI uses servers only in folders that you have told it to trust.",
			NextToken: "Set the variable %s before you start Gemini CLI.",
			programs:  []string{"gemini"}, folders: everywhere("~/.gemini"),
			user:    everywhere("~/.gemini/settings.json"),
			project: ".gemini/settings.json", format: JSON, keys: []string{"mcpServers"},
			shape: shape{url: "httpUrl"},
		},
		{
			Name: "copilot", Title: "GitHub Copilot CLI", Synonyms: []string{"copilot-cli", "github-copilot"},
			Docs: "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
			HTTP: true, Variable: "${%s}", Verb: copilotVerb(),
			Next: session, NextProject: "Copilot asks whether you trust the folder.",
			NextToken: "Set the variable %s before you start Copilot.",
			programs:  []string{"copilot"}, folders: everywhere("~/.copilot"),
			user:    everywhere("$COPILOT_HOME/mcp-config.json", "~/.copilot/mcp-config.json"),
			project: ".github/mcp.json", format: JSON, keys: []string{"mcpServers"},
			shape: shape{stdio: "local", http: "http", extra: []Member{member("tools", []string{"*"})}},
		},
		{
			Name: "windsurf", Title: "Windsurf",
			Docs: "https://docs.windsurf.com/windsurf/cascade/mcp",
			HTTP: true, Window: true, Variable: "${env:%s}",
			Next:      "In the Cascade panel of Windsurf, open the MCP servers and refresh them.",
			NextToken: "Set the variable %s before you start Windsurf, or for all programs.",
			programs:  []string{"windsurf"},
			folders: places{
				linux:   []string{"~/.codeium/windsurf"},
				macOS:   []string{"~/.codeium/windsurf", "/Applications/Windsurf.app"},
				windows: []string{"~/.codeium/windsurf", "$LOCAL/Programs/Windsurf"},
			},
			user:   everywhere("~/.codeium/windsurf/mcp_config.json"),
			format: JSON, keys: []string{"mcpServers"},
			shape: shape{url: "serverUrl"},
		},
		{
			Name: "zed", Title: "Zed",
			Docs: "https://zed.dev/docs/ai/mcp",
			HTTP: true, Window: true,
			Instead: "Zed reads no variables in headers: name the folder, which needs no token, or connect without --token-env, " +
				"and add \"headers\": {\"Authorization\": \"Bearer TOKEN\"} to the entry, in a file that only you can read.",
			Next:        "Zed starts the server by itself; the settings of its agent panel show it.",
			NextProject: "Zed reads the settings of a project that you trust.",
			programs:    []string{"zed", "zeditor"},
			folders: places{
				linux:   []string{"$CONFIG/zed"},
				macOS:   []string{"~/.config/zed", "/Applications/Zed.app"},
				windows: []string{"$CONFIG/Zed", "$LOCAL/Programs/Zed"},
			},
			user: places{
				linux:   []string{"$CONFIG/zed/settings.json"},
				macOS:   []string{"~/.config/zed/settings.json"},
				windows: []string{"$CONFIG/Zed/settings.json"},
			},
			project: ".zed/settings.json", format: JSON, keys: []string{"context_servers"},
		},
		{
			Name: "cline", Title: "Cline",
			Docs: "https://docs.cline.bot/mcp/adding-and-configuring-servers",
			HTTP: true, Window: true,
			Instead: "Cline reads no variables in headers: name the folder, which needs no token, or connect without --token-env, " +
				"and add \"headers\": {\"Authorization\": \"Bearer TOKEN\"} to the entry, in a file that only you can read.",
			Next:    "Cline loads the file by itself; its MCP servers, Installed, show it.",
			folders: everywhere("$CONFIG/Code/User/globalStorage/saoudrizwan.claude-dev", "~/.cline"),
			user: everywhere("$CONFIG/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
				"~/.cline/data/settings/cline_mcp_settings.json"),
			format: JSON, keys: []string{"mcpServers"},
			shape: shape{http: "streamableHttp", extra: []Member{member("disabled", false)}},
		},
		{
			Name: "continue", Title: "Continue",
			Docs: "https://docs.continue.dev/customize/deep-dives/mcp",
			HTTP: true, Window: true, Variable: "${{ secrets.%s }}",
			Next:      "Continue loads the file by itself. Its agent mode has the tools.",
			NextToken: "Write %s=TOKEN into ~/.continue/.env, from which Continue reads its secrets.",
			programs:  []string{"cn"}, folders: everywhere("~/.continue"),
			user:   everywhere("~/.continue/config.yaml"),
			format: YAML, keys: []string{"mcpServers"}, list: true,
			shape: shape{http: "streamable-http", headers: []string{"requestOptions", "headers"}},
		},
		{
			Name: "goose", Title: "Goose",
			Docs: "https://block.github.io/goose/docs/getting-started/using-extensions", link: gooseLink,
			HTTP: true, Variable: "${%s}",
			Next:      session,
			NextToken: "Set the variable %s before you start Goose, or add it to the secrets of Goose.",
			programs:  []string{"goose"},
			folders: places{
				linux:   []string{"$CONFIG/goose"},
				macOS:   []string{"~/.config/goose", "/Applications/Goose.app"},
				windows: []string{"$CONFIG/Block/goose"},
			},
			user: places{
				linux:   []string{"$CONFIG/goose/config.yaml"},
				macOS:   []string{"~/.config/goose/config.yaml"},
				windows: []string{"$CONFIG/Block/goose/config/config.yaml"},
			},
			format: YAML, keys: []string{"extensions"},
			shape: shape{stdio: "stdio", http: "streamable_http", command: "cmd", env: "envs", url: "uri",
				envKeys: "env_keys", name: true, extra: []Member{member("enabled", true), member("timeout", 300)}},
		},
		{
			Name: "opencode", Title: "opencode",
			Docs: "https://opencode.ai/docs/mcp-servers",
			HTTP: true, Variable: "{env:%s}",
			Next:      restart("opencode"),
			NextToken: "Set the variable %s before you start opencode.",
			programs:  []string{"opencode"},
			folders: places{
				linux:   []string{"$CONFIG/opencode"},
				macOS:   []string{"~/.config/opencode"},
				windows: []string{"~/.config/opencode"},
			},
			user: places{
				linux:   []string{"$OPENCODE_CONFIG", "$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc"},
				macOS:   []string{"$OPENCODE_CONFIG", "~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"},
				windows: []string{"$OPENCODE_CONFIG", "~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"},
			},
			project: "opencode.json", format: JSON, keys: []string{"mcp"},
			shape: shape{stdio: "local", http: "remote", oneList: true, env: "environment",
				extra: []Member{member("enabled", true)}},
		},
		{
			Name: "lmstudio", Title: "LM Studio", Synonyms: []string{"lm-studio"},
			Docs: "https://lmstudio.ai/docs/app/mcp", link: lmStudioLink,
			HTTP: true, Window: true,
			Instead: "LM Studio reads no variables in headers: name the folder, which needs no token, or connect without --token-env, " +
				"and add \"headers\": {\"Authorization\": \"Bearer TOKEN\"} to the entry, in a file that only you can read.",
			Next:     "LM Studio loads the file by itself. Switch the server on in the Program tab of a chat.",
			programs: []string{"lms"},
			folders: places{
				linux:   []string{"~/.lmstudio", "~/.cache/lm-studio"},
				macOS:   []string{"~/.lmstudio", "~/.cache/lm-studio", "/Applications/LM Studio.app"},
				windows: []string{"~/.lmstudio", "~/.cache/lm-studio", "$LOCAL/Programs/LM Studio"},
			},
			user:   everywhere("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
			format: JSON, keys: []string{"mcpServers"},
		},
		{
			Name: "kiro", Title: "Kiro", Synonyms: []string{"kiro-cli"},
			Docs: "https://kiro.dev/docs/mcp/configuration/", link: kiroLink,
			HTTP: true, Window: true, Variable: "${%s}",
			Next:      "Kiro loads the file by itself; its panel of MCP servers shows it.",
			NextToken: "Set the variable %s before you start Kiro, and approve it when Kiro asks.",
			programs:  []string{"kiro", "kiro-cli"},
			folders: places{
				linux:   []string{"~/.kiro"},
				macOS:   []string{"~/.kiro", "/Applications/Kiro.app"},
				windows: []string{"~/.kiro", "$LOCAL/Programs/Kiro"},
			},
			user:    everywhere("~/.kiro/settings/mcp.json"),
			project: ".kiro/settings/mcp.json", format: JSON, keys: []string{"mcpServers"},
			shape: shape{extra: []Member{member("disabled", false)}},
		},
		{
			Name: "qwen", Title: "Qwen Code", Synonyms: []string{"qwen-code"},
			Docs: "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
			HTTP: true, Variable: "${%s}", Verb: qwenVerb(),
			Next:      session,
			NextToken: "Set the variable %s before you start Qwen Code.",
			programs:  []string{"qwen"}, folders: everywhere("~/.qwen"),
			user:    everywhere("~/.qwen/settings.json"),
			project: ".qwen/settings.json", format: JSON, keys: []string{"mcpServers"},
			shape: shape{url: "httpUrl"},
		},
	}
}
