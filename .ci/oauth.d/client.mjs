// Signs in with the MCP SDK for TypeScript and searches.
//
//   node client.mjs PUBLIC-URL FILE
//
// FILE receives the token of the user with rights.
import { writeFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { auth, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'

const [, , server, file] = process.argv
const redirectUrl = 'http://127.0.0.1:1/callback'

function want(condition, what, got) {
	if (!condition) throw new Error(`want ${what}, got ${got}`)
	console.log(`typescript: ${what}`)
}

// A Provider has what the SDK needs to sign one user in. It takes the place of a browser:
// it chooses the user, and follows the redirects to the one with the code.
class Provider {
	redirectUrl = redirectUrl
	clientMetadata = { client_name: 'MCP client', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' }
	constructor(user) { this.user = user }
	clientInformation() { return { client_id: 'typescript' } }
	tokens() { return this.saved }
	saveTokens(tokens) { this.saved = tokens }
	saveCodeVerifier(verifier) { this.verifier = verifier }
	codeVerifier() { return this.verifier }
	state() { return this.sent = crypto.randomUUID() }
	async redirectToAuthorization(url) {
		this.asked = new URL(url)
		let at = new URL(url)
		at.searchParams.set('connector_id', this.user)
		for (let i = 0; i < 10 && !at.href.startsWith(redirectUrl); i++) {
			const answer = await fetch(at, { redirect: 'manual' })
			if (!answer.headers.has('location')) throw new Error(`${at}: ${answer.status} ${await answer.text()}`)
			at = new URL(answer.headers.get('location'), at)
		}
		if (at.searchParams.get('state') !== this.sent) throw new Error(`the state of ${at} is not ${this.sent}`)
		this.code = at.searchParams.get('code')
	}
}

// connect signs a user in and returns a client of the server at a path.
async function connect(path, provider) {
	const make = () => new StreamableHTTPClientTransport(new URL(server + path), { authProvider: provider })
	const client = () => new Client({ name: 'test', version: '1' })
	const first = make()
	const error = await client().connect(first).then(() => undefined, error => error)
	if (!(error instanceof UnauthorizedError)) throw error ?? new Error('connected without a token')
	await first.finishAuth(provider.code)
	const second = client()
	await second.connect(make())
	return second
}

const ask = (path, token) => fetch(server + path, {
	method: 'POST',
	headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json',
		accept: 'application/json, text/event-stream' },
	body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
})

const anna = new Provider('anna')
for (const path of ['/mcp', '/mcp/docs']) {
	const client = await connect(path, Object.assign(anna, { saved: undefined }))
	const { tools } = await client.listTools()
	const search = tools.find(tool => tool.name.endsWith('search'))
	const result = await client.callTool({ name: search.name, arguments: { query: 'holidays' } })
	want(JSON.stringify(result).includes('25 days'), `a hit of ${search.name} at ${path}`, JSON.stringify(result))
	want(anna.asked.searchParams.get('resource') === server + path, `resource ${server + path}`, anna.asked)
	want(anna.asked.searchParams.get('code_challenge_method') === 'S256', 'PKCE', anna.asked)
	await client.close()
}

const otto = new Provider('otto')
const refused = await connect('/mcp', otto).then(() => undefined, error => error)
want(refused, 'no connection for a user without rights', 'one')
const denied = await ask('/mcp', otto.saved.access_token)
want(denied.status === 403 && denied.headers.get('www-authenticate').includes('error="insufficient_scope"'),
	'403 insufficient_scope for a user without rights', `${denied.status} ${denied.headers.get('www-authenticate')}`)

// A token for the client itself, without the audience of the server.
const other = new Provider('anna')
await auth(other, { serverUrl: server + '/mcp', scope: 'openid groups' })
await auth(other, { serverUrl: server + '/mcp', scope: 'openid groups', authorizationCode: other.code })
const wrong = await ask('/mcp', other.saved.access_token)
want(wrong.status === 401 && wrong.headers.get('www-authenticate').includes('is for another audience'),
	'401 for a token for another audience', `${wrong.status} ${wrong.headers.get('www-authenticate')}`)
writeFileSync(file, anna.saved.access_token)
