/** A job's header arrives unchanged, whatever it contains. */
import { assert, describe, it } from "@effect/vitest"
import type { Msg, NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Schema } from "effect"
import { afterAll, beforeAll } from "vitest"
import { decodeJob, encodeJob, isForeign, type JobHeader } from "../../../shared/bus/protocol/JobHeader.ts"
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

/** Sends one message per header through the server and back. */
const roundTrip = async <A = JobHeader | undefined>(
  all: ReadonlyArray<string>,
  read: (message: Msg) => A | JobHeader | undefined = decodeJob
) => {
  const subscription = connection.subscribe("headers", { max: all.length })
  for (const headers of all) outbox.publish("headers", undefined, headers)
  const jobs: Array<A | JobHeader | undefined> = []
  for await (const message of subscription) jobs.push(read(message))
  return jobs
}

const job: JobHeader = {
  version: 3,
  id: "AbC1",
  attempt: 2,
  reply: "r.chat.X.AbC1.2",
  deadline: 1_700_000_000_123,
  operation: "chat.completions",
  model: "gpt",
  tenant: "key_1",
  owner: { id: "key_0", salt: "c2FsdHNhbHRzYWx0c2FsdA" },
  contentType: "application/json",
  headers: { "anthropic-beta": "a, b" },
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  bodySize: 512,
  isPlain: true
}

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

describe("a job's header", () => {
  it("arrives unchanged, whatever it contains", async () => {
    const all = hostile.map((value) => ({
      ...job,
      operation: value,
      model: value,
      tenant: value,
      // an id is never empty
      owner: { id: `id${value}`, salt: job.owner!.salt },
      contentType: value,
      headers: { value }
    }))
    assert.deepStrictEqual(await roundTrip(all.map((job) => encodeJob(job, "id"))), all)
  })

  it("has no owner in version 2", async () => {
    const { owner: _owner, ...rest } = job
    const former = { ...rest, version: 2, isPlain: false } as const
    assert.deepStrictEqual(await roundTrip([encodeJob({ ...job, version: 2 }, "id")]), [{
      ...former,
      owner: undefined
    }])
  })

  it("omits unknown values", async () => {
    const bare = {
      ...job,
      owner: undefined,
      reply: "",
      contentType: "",
      headers: undefined,
      traceparent: undefined,
      bodySize: 0
    }
    assert.deepStrictEqual(await roundTrip([encodeJob(bare, "id")]), [bare])
  })

  it.prop("never breaks its line", [Schema.String], ([value]) => {
    const lines = encodeJob({ ...job, model: value, contentType: value, headers: { value } }, "id").split("\r\n")
    assert.deepStrictEqual(lines.with(1, ""), ["NATS/1.0", "", "Nats-Msg-Id: id", "", ""])
    assert.match(lines[1]!, /^Gw-Job: [\x20-\x7e]*$/)
  }, { arbitrary: { runs: 1_000 } })

  it("of another version, or with a malformed number, is rejected", async () => {
    const good = encodeJob(job, "id")
    const bad = [
      good.replace("Gw-Job: 3 ", "Gw-Job: 4 "),
      good.replace(" 2 r.chat", " many r.chat"),
      good.replace(" plain\r\n", " plain more\r\n"),
      good.replace(" 512 ", " 0.5 "),
      "NATS/1.0\r\nGw-V: 1\r\n\r\n",
      "NATS/1.0\r\n\r\n"
    ]
    assert.deepStrictEqual(await roundTrip([good, ...bad]), [job, ...bad.map(() => undefined)])
    assert.deepStrictEqual(await roundTrip([good, ...bad], isForeign), [false, true, ...bad.slice(1).map(() => false)])
  })
})
