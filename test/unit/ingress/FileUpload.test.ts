/** The memory that an upload reserves while its file comes in, and forms that cannot be read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HttpServerRequest } from "effect/http"
import { BodyWaits } from "../../../services/ingress/body/BodyMemory.ts"
import * as FileUpload from "../../../services/ingress/owned/FileUpload.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { InvalidRequest, QueueFull } from "../../../shared/contract/JobError.ts"
import type { ClientFile, ClientFiles } from "../../../shared/files/ClientFiles.ts"

const file: ClientFile = {
  id: "file-1",
  purpose: "batch",
  filename: "a.jsonl",
  bytes: 0,
  lines: 0,
  created: 0,
  expires: 0
}

/** Takes any content. */
const files = {
  create: (_owner, _about, content) => Effect.as(Stream.runDrain(content), file)
} as ClientFiles["Service"]

const formOf = (content: string): FormData => {
  const form = new FormData()
  form.append("purpose", "batch")
  form.append("file", new Blob([content]), "a.jsonl")
  return form
}

const upload = Effect.fnUntraced(function*(encoded: Response, budgetBytes: number) {
  const headers = { "content-type": encoded.headers.get("content-type") ?? "" }
  const body = yield* Effect.promise(() => encoded.arrayBuffer())
  const request = HttpServerRequest.fromWeb(new Request("http://gateway/v1/files", { method: "POST", headers, body }))
  const bodies = new TenantBudget(2 * budgetBytes)
  const budget = new BodyWaits(bodies, 0).upload("key")
  const received = yield* Effect.result(
    FileUpload.receive(files, { id: "key", salt: "salt" }, request, budget)
  )
  budget.release()
  assert.isTrue(bodies.reserve("key", budgetBytes))
  return received._tag === "Success" ? "stored" : received.failure
})

describe("an upload", () => {
  const mebibyte = 1024 * 1024
  const cases: ReadonlyArray<readonly [name: string, content: string, isStored: boolean]> = [
    ["its longest line", "x".repeat(400_000), true],
    ["its longest line", "x".repeat(600_000), false],
    ["what it keeps of each line", "{}\n".repeat(13_000), true],
    ["what it keeps of each line", "{}\n".repeat(14_000), false]
  ]
  for (const [name, content, isStored] of cases) {
    it.effect(`needs memory for ${name}: ${isStored ? "enough" : "too little"}`, () =>
      Effect.gen(function*() {
        const received = yield* upload(new Response(formOf(content)), mebibyte)
        if (isStored) assert.strictEqual(received, "stored")
        else assert.instanceOf(received, QueueFull)
      }))
  }

  const file = "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{}\r\n"
  const purpose = "--x\r\ncontent-disposition: form-data; name=\"purpose\"\r=batch\r\n--x--\r\n"
  for (const [place, body] of [["first", purpose + file], ["last", file + purpose]] as const) {
    it.effect(`is refused if its ${place} part has a header that ends in a carriage return alone`, () =>
      Effect.gen(function*() {
        const encoded = new Response(body, { headers: { "content-type": "multipart/form-data; boundary=x" } })
        assert.instanceOf(yield* upload(encoded, mebibyte), InvalidRequest)
      }))
  }
})
