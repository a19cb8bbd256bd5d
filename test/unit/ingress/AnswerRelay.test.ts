/** The relay of a job's answer, with a bus, a response and a clock that the test controls. */
import { afterEach, assert, beforeEach, describe, it, vi } from "vitest"
import { Writable } from "node:stream"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import { ProviderFailed } from "../../../shared/contract/JobError.ts"
import { relay, type RelayOptions } from "../../../services/ingress/answer/AnswerRelay.ts"
import type { ResponseHead } from "../../../services/ingress/exchange/Exchange.ts"
import { collectGarbage } from "../../fixture/general/Garbage.ts"

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A client's connection. It takes what it is given, or only when it reads. */
class Connection extends Writable {
  readonly #takesAll: boolean
  text = ""
  #taken: (() => void) | undefined

  constructor(takesAll: boolean) {
    super({ highWaterMark: 1 })
    this.#takesAll = takesAll
  }

  override _write(bytes: Buffer, _: string, done: () => void): void {
    this.text += bytes.toString()
    if (this.#takesAll) done()
    else this.#taken = done
  }

  read(): void {
    this.#taken?.()
  }
}

/** Starts a request. `said` lists what the relay tells the bus and the record. */
const start = (
  { dialect = "openai", streams, takesAll = true }: {
    readonly dialect?: string
    readonly streams: boolean
    readonly takesAll?: boolean
  }
) => {
  const said: Array<string> = []
  const heads: Array<ResponseHead> = []
  const connection = new Connection(takesAll)
  let listener: AnswerListener | undefined
  let close = () => {}
  const jobs = {
    submit: (_: JobRequest, given: AnswerListener) => {
      listener = given
      return {
        id: "job",
        taken: (bytes: number) => said.push(`taken ${bytes}`),
        flushed: () => said.push("flushed"),
        cancel: () => said.push("cancelled")
      }
    }
  } as unknown as JobClient["Service"]
  const exchange = {
    operation: { dialect },
    record: {
      id: "req_1",
      markSubmitted: () => undefined,
      markClaimed: () => undefined,
      markAnswering: () => said.push("answering"),
      markBroken: (tag: string) => said.push(`broken ${tag}`)
    },
    open: (head: ResponseHead) => {
      heads.push(head)
      return connection
    },
    send: (head: ResponseHead, body: Uint8Array) => {
      heads.push(head)
      connection.end(body)
    },
    fail: (error: { readonly _tag: string }) => said.push(`failed ${error._tag}`),
    break: () => said.push("cut"),
    guard: (step: () => void) => step(),
    whenClosed: (closer: () => void) => (close = closer)
  } as unknown as RelayOptions["exchange"]
  const settled: Array<unknown> = []
  const submit = () => {
    const body = new Uint8Array(1_000)
    const request = { workload: "chat", pool: "default", model: "m", body } as unknown as JobRequest
    const onWait = (provider: string) => {
      said.push(`waits for ${provider}`)
      let isOver = false
      return () => {
        if (!isOver) said.push("works")
        isOver = true
      }
    }
    relay({ jobs, exchange, request, streams, onWait, settle: (consumed) => settled.push(consumed) })
    return new WeakRef(body)
  }
  const body = submit()
  return { listener: listener!, said, heads, connection, settled, body, close: () => close() }
}

const head = (contentType: string) => ({ status: 200, contentType, headers: { "x-gateway-provider": "p" } })
const bytes = (text: string) => Buffer.from(text)
const failed = new ProviderFailed({ provider: "p", reason: "status", status: 503 })

/** What is scheduled within this turn of the event loop has happened. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe("a client that asks for a stream", () => {
  it("gets a comment after 15 s without an answer, and then the answer; until then a worker can be replaced", async () => {
    const { connection, heads, listener, said } = start({ streams: true })
    listener.onClaim()
    vi.advanceTimersByTime(14_999)
    assert.isEmpty(heads)
    vi.advanceTimersByTime(1)
    await turn()
    assert.deepStrictEqual([said, connection.text], [[], ": keep-alive\n\n"])
    listener.onRestart()
    listener.onStart(head("text/event-stream"))
    listener.onChunk(bytes("data: 1\n\n"), false)
    listener.onEnd(undefined)
    await turn()
    assert.strictEqual(heads[0]?.headers["content-type"], "text/event-stream")
    assert.strictEqual(connection.text, ": keep-alive\n\ndata: 1\n\n")
    assert.isTrue(connection.writableFinished)
    assert.deepStrictEqual(said, ["flushed", "answering", "taken 9"])
  })

  it("gets a comment after 15 s of silence between events, but not within one", async () => {
    const { connection, listener } = start({ streams: true })
    listener.onClaim()
    listener.onStart(head("text/event-stream"))
    listener.onChunk(bytes("data: 1\n\n"), false)
    await turn()
    vi.advanceTimersByTime(15_000)
    await turn()
    listener.onChunk(bytes("data: "), false)
    await turn()
    vi.advanceTimersByTime(30_000)
    listener.onChunk(bytes("2\n\n"), true)
    listener.onEnd(undefined)
    await turn()
    assert.strictEqual(connection.text, "data: 1\n\n: keep-alive\n\ndata: 2\n\n")
  })

  it("gets an error after that as an event, also for an answer that is no stream", async () => {
    const ends = [
      (listener: AnswerListener) => listener.onError(failed),
      (listener: AnswerListener) => listener.onStart(head("application/json"))
    ]
    for (const end of ends) {
      const { connection, listener, said } = start({ streams: true })
      listener.onClaim()
      vi.advanceTimersByTime(15_000)
      end(listener)
      await turn()
      assert.match(connection.text, /^: keep-alive\n\ndata: \{"error":\{[^\n]*"upstream_error"[^\n]*\}\}\n\n$/)
      assert.include(said, "broken ProviderFailed")
    }
  })

  it("gets an error of the responses format as a failed response", async () => {
    const { connection, listener } = start({ streams: true, dialect: "responses" })
    listener.onStart(head("text/event-stream"))
    listener.onChunk(bytes("data: 1\n\n"), false)
    await turn()
    listener.onError(failed)
    await turn()
    const [, event = ""] = connection.text.split("event: response.failed\ndata: ")
    const { response } = JSON.parse(event) as { readonly response: Readonly<Record<string, unknown>> }
    assert.match(String(response["id"]), /^resp_[0-9a-f]{32}$/)
    assert.deepInclude(response, { model: "m", status: "failed", output: [] })
  })

  it("gets an error before that with its status, and so does one that asks for JSON at any time", () => {
    for (const [streams, afterMs] of [[true, 14_999], [false, 60_000]] as const) {
      const { heads, listener, said, settled } = start({ streams })
      listener.onClaim()
      vi.advanceTimersByTime(afterMs)
      listener.onError(failed)
      assert.deepStrictEqual([heads, said], [[], ["failed ProviderFailed"]])
      assert.strictEqual(settled[0], "nothing")
    }
  })
})

describe("an answer whose job waits for a provider", () => {
  it("reports the wait until the job works, waits for another or ends", () => {
    const { listener, said } = start({ streams: false })
    listener.onWait("alpha")
    listener.onWait("beta")
    listener.onWait(undefined)
    listener.onWait(undefined)
    assert.deepStrictEqual(said.splice(0), ["waits for alpha", "works", "waits for beta", "works"])
    listener.onWait("beta")
    listener.onError(failed)
    assert.deepStrictEqual(said.splice(0), ["waits for beta", "works", "failed ProviderFailed"])
    const other = start({ streams: false })
    other.listener.onWait("beta")
    other.close()
    assert.deepStrictEqual(other.said, ["waits for beta", "works", "cancelled"])
  })
})

describe("a client that reads slowly", () => {
  it("is given all that has arrived when it has caught up, and the worker is told only then", async () => {
    const { connection, listener, said } = start({ streams: true, takesAll: false })
    listener.onStart(head("text/event-stream"))
    listener.onChunk(bytes("data: 1\n\n"), false)
    await turn()
    for (const text of ["data: 2\n\n", "data: 3\n\n"]) {
      listener.onChunk(bytes(text), false)
      await turn()
    }
    assert.deepStrictEqual([connection.text, said], ["data: 1\n\n", ["flushed", "answering"]])
    connection.read()
    await turn()
    assert.strictEqual(connection.text, "data: 1\n\ndata: 2\n\ndata: 3\n\n")
    assert.deepStrictEqual(said.slice(2), ["taken 9"])
    listener.onEnd(undefined)
    await turn()
    assert.isFalse(connection.writableEnded)
    connection.read()
    await turn()
    assert.isTrue(connection.writableFinished)
  })

  it("does not keep the body of its request in memory: that is the job's", async () => {
    const { body, close, connection, listener } = start({ streams: true, takesAll: false })
    listener.onStart(head("text/event-stream"))
    listener.onChunk(bytes("data: 1\n\n"), true)
    listener.onEnd(undefined)
    await turn()
    await collectGarbage()
    assert.isUndefined(body.deref())
    assert.isFalse(connection.writableFinished)
    close()
  })
})

describe("an answer that has started", () => {
  it("is cut if it fails and is not a stream of events", async () => {
    const { connection, listener, said } = start({ streams: false })
    listener.onStart(head("audio/mpeg"))
    listener.onChunk(bytes("sound"), false)
    await turn()
    listener.onError(failed)
    await turn()
    assert.strictEqual(connection.text, "sound")
    assert.deepStrictEqual(said.slice(-2), ["broken ProviderFailed", "cut"])
  })

  it("is cancelled if the client leaves, and not after its end", async () => {
    const { close, listener, said, settled } = start({ streams: false })
    listener.onStart(head("audio/mpeg"))
    listener.onChunk(bytes("sound"), false)
    close()
    await turn()
    assert.deepStrictEqual([said, settled], [["cancelled"], [undefined]])
    const ended = start({ streams: false })
    ended.listener.onEnd(undefined)
    ended.close()
    assert.notInclude(ended.said, "cancelled")
  })
})
