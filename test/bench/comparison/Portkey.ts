/**
 * Portkey's gateway from npm, a peer for comparison. It is installed into the run's folder and is no dependency of this
 * project.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { freePort, startNode } from "../Processes.ts"
import type { Ground, Stack } from "../Stacks.ts"
import { answersChat } from "../Stacks.ts"

const version = "1.15.2"

/** Portkey cannot be installed, for instance without a network. */
export class PortkeyMissing extends Schema.TaggedError<PortkeyMissing>()("PortkeyMissing", { reason: Schema.String }) {
  override get message() {
    return `Portkey ${version} could not be installed: ${this.reason}`
  }
}

/**
 * Portkey adds headers to responses that it relays, streams and embeddings. Node forbids this since version 20, so that it
 * would answer 500; copies of these responses accept headers.
 */
const preload = `
const { fetch } = globalThis
globalThis.fetch = async (...words) => {
  const answer = await fetch(...words)
  const isPassedOn = answer.headers.get("content-type") === "text/event-stream" || answer.url.endsWith("/embeddings")
  return isPassedOn ? new Response(answer.body, answer) : answer
}
`

const install = Effect.fn("Portkey.install")(function*(folder: string) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  yield* (yield* FileSystem.FileSystem).makeDirectory(folder)
  const words = ["install", "--prefix", folder, "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit"]
  const patience = ["--fetch-retries=1", "--fetch-timeout=30000"]
  const npm = ChildProcess.make("npm", [...words, ...patience, `@portkey-ai/gateway@${version}`], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore"
  })
  const code = yield* spawner.exitCode(npm).pipe(
    Effect.timeout("3 minutes"),
    Effect.mapError(({ message }) => new PortkeyMissing({ reason: message }))
  )
  if (code !== 0) return yield* new PortkeyMissing({ reason: `npm install exited with ${code}` })
})

export const startPortkey = Effect.fn("Portkey.start")(function*(ground: Ground) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.join(ground.logs, "portkey")
  yield* install(folder)
  const shim = path.join(folder, "preload.mjs")
  yield* fs.writeFileString(shim, preload)
  const port = yield* freePort
  const program = path.join(folder, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js")
  const gateway = yield* startNode(ground.logs, "portkey", program, { NODE_OPTIONS: `--import=${shim}` }, [
    `--port=${port}`,
    "--headless"
  ])
  const stack: Stack = {
    name: "portkey",
    url: `http://127.0.0.1:${port}`,
    headers: { "x-portkey-provider": "openai", "x-portkey-custom-host": `${ground.providerUrl}/v1` },
    key: "none",
    pids: () => ({ ingress: [gateway.pid], provider: [ground.provider] })
  }
  yield* answersChat(gateway, stack)
  return stack
})
