/** Lines of batches: of requests, of results, and in bodies of requests. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { BodyWaits } from "../../../services/ingress/body/BodyMemory.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { RequestSplitter } from "../../../services/ingress/owned/batches/RequestSplitter.ts"
import { toResult } from "../../../services/ingress/owned/batches/MessageBatchView.ts"
import { linesOf } from "../../../shared/batches/lines/InputLines.ts"
import { isLineId, onOneLine, outputOf, placeOf } from "../../../shared/batches/lines/Line.ts"
import { resultOf } from "../../../shared/batches/lines/LineResult.ts"
import { mistakeOf } from "../../../shared/batches/BatchLine.ts"
import { InvalidRequest, ProviderTimeout, WorkerLost } from "../../../shared/contract/JobError.ts"

const owner = { id: "key_a", salt: "salt" }
const batch = `batch_${"0".repeat(32)}`

/** The text in pieces of this many bytes. */
const inPieces = (text: string, size: number): ReadonlyArray<Uint8Array> => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

describe("the lines of a file", () => {
  for (const size of [1, 3, 100]) {
    it.effect(`have their numbers, without empty ones, in pieces of ${size} bytes`, () =>
      Effect.gen(function*() {
        const lines = yield* Stream.runCollect(linesOf(Stream.fromIterable(inPieces("\na ü\n\n  \r\nb\r\nc", size))))
        assert.deepStrictEqual(lines.map(({ index, number, text }) => [index, number, text.trim()]), [
          [0, 2, "a ü"],
          [1, 5, "b"],
          [2, 6, "c"]
        ])
      }))
  }
})

describe("the result of a line", () => {
  const lineOf = (...[about, body]: [Parameters<typeof outputOf>[1], string?]) => {
    const [head, tail] = outputOf({ batch, line: 3 }, about)
    const text = `${head}${body ?? ""}${tail}`
    assert.match(text, /^[^\n]*\n$/)
    return JSON.parse(text) as { readonly response: unknown; readonly error: unknown }
  }

  it("is a line, whatever the answer looks like", () => {
    const body = Buffer.from(onOneLine(Buffer.from("{\n  \"text\": \"a\\nb\"\r\n}\n"))).toString()
    const { response } = lineOf({ customId: "a\n\"b\"", status: 200 }, body)
    assert.deepInclude(response, { status_code: 200, body: { text: "a\nb" } })
  })

  it("is a response if the request was refused, and an error if the gateway or a provider failed", () => {
    const refused = resultOf("a", "chat.completions", InvalidRequest.at("model", "is required"), "id")
    const line = lineOf(refused.about, Buffer.from(refused.bytes).toString())
    assert.deepInclude(line.response, { status_code: 400 })
    assert.include(JSON.stringify(line.response), "\"param\":\"model\"")
    const lost = resultOf("a", "chat.completions", new WorkerLost(), "id")
    assert.deepInclude(lineOf(lost.about).error, { code: "worker_lost" })
    const late = resultOf("a", "messages", new ProviderTimeout({ provider: "p", phase: "total" }), "id")
    assert.deepInclude(toResult(lineOf(late.about)), { custom_id: "a" })
    assert.include(JSON.stringify(toResult(lineOf(late.about))), "upstream_timeout")
  })

  it("fits into the log, however much of the request its error quotes", () => {
    const name = "\n".repeat(2 * 1024 * 1024)
    const { about, bytes } = resultOf("a", "chat.completions", InvalidRequest.at(`metadata.${name}`, "is wrong"), "id")
    assert.strictEqual(about.status, 400)
    assert.isBelow(bytes.length, 64 * 1024)
  })

  it("has the place of its job", () => {
    assert.deepStrictEqual(placeOf(`${batch}-12`, owner), { owner, batch, line: 12 })
    for (const id of [batch, `${batch}-`, `${batch}-1.2`, "task_1", `${batch}-1234567`]) {
      assert.isFalse(isLineId(id), id)
    }
  })
})

const request = {
  endpoint: "/v1/chat/completions",
  input: "file",
  total: 1,
  atOnce: 1,
  window: "24h",
  expires: 0,
  headers: {},
  metadata: null
}

const line = (fields: object) => ({
  index: 0,
  number: 5,
  text: JSON.stringify({ custom_id: "a", method: "POST", url: request.endpoint, body: {}, ...fields })
})

describe("a line of a batch", () => {
  it("belongs into it, or says why not", () => {
    assert.isUndefined(mistakeOf(request, line({})))
    assert.deepInclude(mistakeOf(request, line({ url: "/v1/embeddings" })), { line: 5, param: "url" })
    assert.deepInclude(mistakeOf(request, line({ body: { stream: true } })), { line: 5, param: "body.stream" })
    assert.deepInclude(mistakeOf(request, line({ body: 1 })), { line: 5, code: "invalid_json_line" })
  })
})

describe("a mistake in a line", () => {
  it("does not grow with the batch's endpoint, because a batch lists many mistakes", () => {
    const endpoint = `/v1beta/models/${"m".repeat(100_000)}:generateContent`
    const mistake = mistakeOf({ ...request, endpoint }, line({ url: "/x" }))
    assert.deepInclude(mistake, { code: "mismatched_endpoint", line: 5, param: "url" })
    assert.isBelow(JSON.stringify(mistake).length, 1_000)
  })
})

describe("the requests in a body", () => {
  const requests = [{ a: "}]" }, { b: [{ c: "\\\"{" }, []] }, {}]
  const body = ` { "requests" : ${JSON.stringify(requests)} , "other":[1,{"d":{}}] }`

  const splitterWith = (budgetBytes: number) => {
    const bodies = new TenantBudget(2 * budgetBytes)
    const budget = new BodyWaits(bodies, 0).upload("key")
    return { bodies, budget, splitter: new RequestSplitter(budget) }
  }

  for (const size of [1, 2, 7, 1_000]) {
    it(`are split, with what is around them, in pieces of ${size} bytes`, () => {
      const { splitter } = splitterWith(1_000)
      const found = inPieces(body, size).flatMap((piece) => splitter.push(piece) ?? assert.fail("no memory"))
      assert.deepStrictEqual(
        found.map((each) => JSON.parse(Buffer.from(each).toString()) as unknown),
        [...requests, { d: {} }]
      )
      const frame = JSON.parse(Buffer.from(splitter.frame).toString()) as unknown
      assert.deepStrictEqual(frame, { requests: [0, 0, 0], other: [1, 0] })
    })
  }

  it("are not kept if too much is around them", () => {
    const { splitter } = splitterWith(1_000)
    for (let megabytes = 0; megabytes < 3; megabytes++) splitter.push(Buffer.alloc(1024 * 1024, " "))
    assert.isTrue(splitter.isTooLarge)
  })

  it("take memory for the largest of them, and are refused without it", () => {
    const { bodies, budget, splitter } = splitterWith(10_000)
    const request = (bytes: number) => Buffer.from(`{"a":"${"x".repeat(bytes - 8)}"},`)
    splitter.push(Buffer.from(`{"requests":[`))
    for (let each = 0; each < 100; each++) assert.lengthOf(splitter.push(request(6_000)) ?? [], 1)
    assert.isFalse(bodies.reserve("key", 5_000))
    assert.isUndefined(splitter.push(request(11_000)))
    budget.release()
    assert.isTrue(bodies.reserve("key", 10_000))
  })
})
