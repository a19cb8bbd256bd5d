/** Portkey's gateway from npm. */
import { Effect, FileSystem, Path } from "effect"
import { freePort, startNode } from "../Processes.ts"
import type { Ground, Stack } from "../Stacks.ts"
import { answersChat } from "../Stacks.ts"
import { install, PeerMissing } from "./Peer.ts"

const version = "1.15.2"
const peer = `Portkey ${version}`

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

const npm = (folder: string) =>
  [
    "npm",
    "install",
    ...["--prefix", folder, "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit"],
    ...["--fetch-retries=1", "--fetch-timeout=30000"],
    `@portkey-ai/gateway@${version}`
  ] as const

export const startPortkey = Effect.fn("Portkey.start")(function*(ground: Ground) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.join(ground.logs, "portkey")
  yield* fs.makeDirectory(folder)
  yield* install(peer, npm(folder), "3 minutes")
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
  yield* answersChat(gateway, stack).pipe(
    Effect.mapError(({ message }) => new PeerMissing({ peer, reason: message }))
  )
  return stack
})
