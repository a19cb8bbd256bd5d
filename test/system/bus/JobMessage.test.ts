/** What a worker has to know about a job arrives unchanged, whatever it contains. */
import { assert, describe, it } from "@effect/vitest"
import type { Msg, NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Schema } from "effect"
import { afterAll, beforeAll } from "vitest"
import { decodeJob, encodeJob, isForeign, type Job } from "../../../shared/bus/protocol/JobMessage.ts"
import type { Version } from "../../../shared/bus/protocol/Subjects.ts"
import { Outbox } from "../../../shared/nats/Outbox.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

let server: NatsServer
let connection: NatsConnection
let outbox: Outbox
beforeAll(async () => {
  server = await NatsServer.start()
  connection = await connect({ servers: server.url })
  outbox = new Outbox(connection, (subject) => assert.fail(subject))
})
afterAll(async () => {
  await connection.close()
  await server.remove()
})

type Encoded = ReturnType<typeof encodeJob>

/** Sends the messages through the server and back, as if from a queue of this version. */
const roundTrip = async <A>(
  all: ReadonlyArray<Encoded>,
  version: Version,
  read: (message: Msg, version: Version) => A
): Promise<ReadonlyArray<A>> => {
  const subscription = connection.subscribe("jobs", { max: all.length })
  for (const { headers, payload } of all) outbox.publish("jobs", payload, headers)
  const found: Array<A> = []
  for await (const message of subscription) found.push(read(message, version))
  return found
}

const body = new Uint8Array(Buffer.from("{\n}"))

const jobOf = (version: Version): Job => ({
  version,
  id: "AbC1",
  attempt: 2,
  reply: "r.chat.X.AbC1.2",
  deadline: 1_700_000_000_123,
  operation: "chat.completions",
  model: "gpt",
  tenant: "key_1",
  owner: version === 2 ? undefined : { id: "key_0", salt: "c2FsdHNhbHRzYWx0c2FsdA" },
  contentType: "application/json",
  headers: { "anthropic-beta": "a, b" },
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  bodySize: body.length,
  isPlain: version !== 2,
  body
})

const encode = (job: Job): Encoded => encodeJob(job, job.body ?? new Uint8Array(0), "id")

const hostile = [
  "two\r\nGw-Injected: 1",
  "\r\n\r\npayload",
  "\0\u0001\u007f",
  "100%",
  "%0d%0a",
  " leading and trailing ",
  " ",
  "",
  "naïve 漢字 🙂"
]

describe.each([2, 3] as const)("a job in version %i", (version) => {
  const job = jobOf(version)

  it("arrives unchanged, whatever it contains", async () => {
    const all = hostile.map((value) => ({
      ...job,
      operation: value,
      model: value,
      tenant: value,
      // an id is never empty
      owner: job.owner && { ...job.owner, id: `id${value}` },
      contentType: value,
      headers: { value }
    }))
    assert.deepEqual(await roundTrip(all.map(encode), version, decodeJob), all)
  })

  it("omits unknown values", async () => {
    const bare = { ...job, owner: undefined, reply: "", contentType: "", headers: undefined, traceparent: undefined }
    assert.deepEqual(await roundTrip([encode(bare)], version, decodeJob), [bare])
  })

  it("comes without a large body, which is not an empty one", async () => {
    const large = { ...job, body: undefined }
    const empty = { ...job, bodySize: 0, body: new Uint8Array(0) }
    assert.deepEqual(await roundTrip([encode(large), encode(empty)], version, decodeJob), [large, empty])
  })

  it.prop("never breaks its line", [Schema.String], ([value]) => {
    const { headers, payload } = encode({ ...job, model: value, contentType: value, headers: { value } })
    const lines = headers.split("\r\n")
    assert.deepStrictEqual([lines[0], ...lines.slice(-3)], ["NATS/1.0", "Nats-Msg-Id: id", "", ""])
    assert.strictEqual(lines.length, version === 2 ? 5 : 4)
    const text = Buffer.from(payload).toString()
    const line = version === 2 ? lines[1]! : text.slice(0, text.indexOf("\n"))
    assert.match(line, version === 2 ? /^Gw-Job: [\x20-\x7e]*$/ : /^3 [\x20-\x7e]*$/)
    assert.isTrue(text.endsWith("{\n}"))
  }, { arbitrary: { runs: 1_000 } })

  it("of another version, or with a malformed number, is rejected", async () => {
    const good = encode(job)
    const end = version === 2 ? " 3\r\n" : " plain\n"
    const edit = (from: string, to: string): Encoded => ({
      headers: good.headers.replace(from, to),
      payload: Buffer.from(Buffer.from(good.payload).toString().replace(from, to))
    })
    const bad = [
      edit(`${version} AbC1`, "4 AbC1"),
      edit(" 2 r.chat", " many r.chat"),
      edit(end, ` more${end}`),
      edit("-01 3", "-01 0.5"),
      { headers: "NATS/1.0\r\nGw-V: 1\r\n\r\n", payload: Buffer.from("text") },
      { headers: "NATS/1.0\r\n\r\n", payload: new Uint8Array(0) }
    ]
    const all = [good, ...bad]
    assert.deepEqual(await roundTrip(all, version, decodeJob), [job, ...bad.map(() => undefined)])
    assert.deepEqual(await roundTrip(all, version, isForeign), [false, true, ...bad.slice(1).map(() => false)])
  })
})

describe("an owner", () => {
  it("is not sent in version 2", async () => {
    const job = jobOf(2)
    const { owner } = jobOf(3)
    assert.deepEqual(await roundTrip([encode({ ...job, owner })], 2, decodeJob), [job])
  })
})
