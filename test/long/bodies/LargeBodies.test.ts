/** The largest accepted bodies, of every shape that is expensive to read, block neither ingress nor a worker for long. */
import { assert, it } from "@effect/vitest"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import { maxBodyBytes } from "../../../services/ingress/body/BodyMemory.ts"
import { maxValues } from "../../../shared/bounds/JsonBounds.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

/** The longest user time in milliseconds for which an accepted body may block an event loop. */
const blockedAtMostMs = 250

const room = maxBodyBytes - 1_000
const filled = (piece: string) => piece.repeat(Math.floor(room / Buffer.byteLength(piece)))
const half = "Bees dance in hives. ".repeat(Math.floor(room / 2 / 21))
const list = (count: number, item: string) => Array.from({ length: Math.floor(count) }, () => item).join()
const message = (content: string) => `"messages":[{"role":"user","content":${content}}]`

/** The body's fields beside the model. */
const chats: Readonly<Record<string, string>> = {
  "ASCII": message(`"${filled("a")}"`),
  "words": message(`"${filled("Bees dance in hives. ")}"`),
  "non-Latin": message(`"${filled("漢")}"`),
  "one character beyond Latin-1": message(`"${filled("a")}Ā"`),
  "escapes": message(`"${filled("\\n")}"`),
  "escaped quotes": message(`"${filled("\\\"")}"`),
  "escaped characters": message(`"${filled("\\u6f22")}"`),
  "white space": `${message("\"a\"")}${filled(" ")}`,
  "a picture": message(
    `[{"type":"image_url","image_url":{"url":"data:image/png;base64,${
      filled("iVBO")
    }"}},{"type":"text","text":"What?"}]`
  ),
  "messages": `"messages":[${list((maxValues - 20) / 3, "{\"role\":\"user\",\"content\":\"a\"}")}]`,
  "large messages": `"messages":[${
    list((maxValues - 20) / 3, `{"role":"user","content":"${"漢".repeat(Math.floor((room / maxValues) - 16))}"}`)
  }]`,
  "parts": message(`[${list((maxValues - 20) / 3, "{\"type\":\"text\",\"text\":\"a\"}")}]`),
  "fields": `${message("\"a\"")},${Array.from({ length: maxValues - 20 }, (_, i) => `"field${i}":1`).join()}`,
  "depth": `${message("\"a\"")},"extra":[${list((maxValues - 20) / 101, `${"[".repeat(100)}${"]".repeat(100)}`)}]`
}

/** A relay only scans, and a translation reads messages and parts: these are the shapes that differ for them. */
const only = (...names: ReadonlyArray<string>) => Object.fromEntries(names.map((name) => [name, chats[name]]))
const relayed = only("escapes", "escaped quotes", "one character beyond Latin-1", "messages", "fields", "depth")
const translated = only("non-Latin", "a picture", "large messages", "parts")

const part = (headers: string, value: string) => `--x\r\ncontent-disposition: form-data; ${headers}\r\n\r\n${value}\r\n`
const sound = part("name=\"file\"; filename=\"a.wav\"", "RIFF")

/** The parts of a form beside the model. */
const forms: Readonly<Record<string, string>> = {
  "a file": part("name=\"file\"; filename=\"a.wav\"", filled("RIFF")),
  "a text": part("name=\"prompt\"", filled("a")) + sound,
  "a non-Latin text": part("name=\"prompt\"", filled("漢")) + sound,
  "what begins like a boundary": part("name=\"prompt\"", filled("\r\n--")) + sound,
  "parts": part("name=\"prompt\"", "a".repeat(room / 1_000 - 100)).repeat(990) + sound
}

const jsonOf = (model: string, fields: string) => ({
  body: `{"model":"${model}","max_tokens":10,${fields}}`,
  headers: {}
})
const formOf = (model: string, parts: string) => ({
  body: `${part("name=\"model\"", model)}${parts}--x--\r\n`,
  headers: { "content-type": "multipart/form-data; boundary=x" }
})

const folder = await mkdtemp(join(tmpdir(), "loop-watch-"))
afterAll(() => rm(folder, { recursive: true }))
const file = join(folder, "held-up")
/** Accepts every request without reading it. */
const provider = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(JSON.stringify({
      choices: [{ index: 0, message: { role: "assistant", content: "Bees." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    }))
  })
})
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve))
afterAll(() => {
  provider.close()
})
const { port } = provider.address() as AddressInfo

const watched = {
  models: "  any-chat: { workload: chat, targets: [{ provider: any }] }\n",
  providers: () => `  any: { protocol: openai, baseUrl: "http://127.0.0.1:${port}/v1", idempotent: true }`,
  services: ["rerank", "embeddings", "speech"],
  environment: {
    NODE_OPTIONS: `--import ${join(import.meta.dirname, "../../fixture/loop-watch/main.ts")}`,
    LOOP_WATCH_FILE: file
  }
}

it.live(
  "a body of 32 MiB blocks no event loop for longer than 250 ms",
  () =>
    Gateway.run(watched, async (gateway) => {
      const paths = {
        "/v1/chat/completions local-chat": chats,
        "/v1/chat/completions any-chat": relayed,
        "/v1/messages any-chat": translated,
        "/v1/rerank local-rerank": {
          "documents": `"query":"bees","documents":[${list(maxValues - 20, "\"a\"")}]`,
          "a document": `"query":"bees","documents":["${filled("漢字")}"]`,
          "a query": `"query":"${filled("bees ")}","documents":["a"]`
        },
        "/v1/responses/compact local-chat": {
          "a message and instructions": `"input":[{"role":"user","content":"${half}"}],"instructions":"${half}"`,
          "items": `"input":[${list((maxValues - 20) / 3, "{\"role\":\"user\",\"content\":\"a\"}")}]`
        },
        "/v1/audio/transcriptions whisper-1": { "a sound": `"file":"${filled("UklG")}"` },
        "/v1/audio/transcriptions whisper-1 form": forms,
        "/v1/embeddings local-embedding": { "an input": `"input":"${filled("word ")}"` }
      }
      const longest: Array<readonly [milliseconds: number, what: string]> = []
      for (const [target, bodies] of Object.entries(paths)) {
        const [path = "", model = "", encoding] = target.split(" ")
        for (const [shape, rest] of Object.entries(bodies)) {
          await writeFile(file, "")
          const { body, headers } = (encoding === "form" ? formOf : jsonOf)(model, rest ?? "")
          const answer = await gateway.request(body, {
            path,
            headers: { "anthropic-version": "2023-06-01", ...headers }
          })
          const text = await answer.text()
          // rejection of its content is fine, of its size or its number of values is not
          if (answer.status !== 200) console.log(`${target} ${shape}: ${answer.status} ${text.slice(0, 200)}`)
          assert.notMatch(text, /"code":"(?:invalid_json|invalid_form|request_too_large)"/, `${target} ${shape}`)
          assert.isBelow(answer.status, 500, `${target} ${shape}: ${text.slice(0, 300)}`)
          for (const line of (await readFile(file, "utf8")).split("\n")) {
            const [service = "", milliseconds = ""] = line.split(" ")
            if (line !== "") longest.push([Number(milliseconds), `${service.split("/").at(-2)}: ${target} ${shape}`])
          }
        }
      }
      const worst = longest.toSorted(([one], [other]) => other - one).slice(0, 12)
      console.log(worst.map(([milliseconds, what]) => `${milliseconds} ms  ${what}`).join("\n"))
      // the time of one indivisible step, on this machine at this moment
      const since = process.threadCpuUsage()
      JSON.parse(`{"model":"m",${chats["escaped quotes"]}}`)
      const parsedMs = process.threadCpuUsage(since).user / 1_000
      console.log(`JSON.parse of escaped quotes: ${parsedMs.toFixed(0)} ms`)
      for (const [milliseconds, what] of worst) {
        assert.isBelow(milliseconds, Math.max(blockedAtMostMs, 3 * parsedMs), what)
      }
    }),
  300_000
)
