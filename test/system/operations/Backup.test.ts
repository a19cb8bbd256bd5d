/** The rights of `admin` suffice to save a bucket as bytes, as the `nats` CLI does, and to restore a lost one. */
import { assert, describe, it } from "@effect/vitest"
import type { NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Schema } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Account } from "../../../shared/nats/Storage.ts"
import { inboxPrefix } from "../../../shared/nats/Credentials.ts"
import { adminHere } from "../../fixture/admin/AdminHere.ts"
import { hungAfterMs } from "../../fixture/general/Eventually.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

let nats: SecureNats
/** The administrator's connections to the accounts of keys and of jobs. */
let control: NatsConnection
let data: NatsConnection

const connectTo = (account: Account) => connect(nats.optionsOf("admin", account))

beforeAll(async () => {
  nats = await SecureNats.start()
  await nats.provision()
  control = await connectTo("control")
  data = await connectTo("data")
})
afterAll(async () => {
  await control?.close()
  await data?.close()
  await nats?.remove()
})

const stream = "KV_API_KEYS"

/** For requests to NATS, whose timeout of a second is too short on a busy machine. */
const patience = { timeout: hungAfterMs }

/** The fields of JetStream's replies that these tests read. */
const decodeAnswer = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({
  error: Schema.optionalKey(Schema.Struct({ description: Schema.String })),
  config: Schema.optionalKey(Schema.Unknown),
  state: Schema.optionalKey(Schema.Unknown),
  deliver_subject: Schema.optionalKey(Schema.String)
})))

const ask = async (connection: NatsConnection, word: string, question: object = {}) => {
  const answer = await connection.request(`$JS.API.STREAM.${word}.${stream}`, JSON.stringify(question), patience)
  const decoded = decodeAnswer(answer.string())
  if (decoded.error !== undefined) assert.fail(`${word}: ${decoded.error.description}`)
  return decoded
}

/** Acknowledges every piece, as `nats stream backup` does: without that the server stops after a few. */
const backUp = async () => {
  const inbox = `${inboxPrefix("admin")}.backup`
  const pieces: Array<Uint8Array> = []
  const whole = new Promise<void>((resolve) =>
    control.subscribe(inbox, {
      callback: (_, message) => {
        if (message.data.length === 0) return resolve()
        pieces.push(message.data)
        message.respond()
      }
    })
  )
  const { config, state } = await ask(control, "SNAPSHOT", { deliver_subject: inbox, chunk_size: 128 * 1024 })
  await whole
  return { config, state, pieces }
}

/** Restores as `nats stream restore` does. */
const restore = async (
  connection: NatsConnection,
  { config, pieces, state }: Awaited<ReturnType<typeof backUp>>
) => {
  const { deliver_subject: to = "" } = await ask(connection, "RESTORE", { config, state })
  for (const piece of pieces) await connection.request(to, piece, patience)
  const { error } = decodeAnswer((await connection.request(to, undefined, patience)).string())
  assert.isUndefined(error)
}

const keys = async (...words: ReadonlyArray<string>) =>
  (await adminHere(["keys", ...words], nats.environmentOf("admin"))).stdout

describe("the bucket of keys", () => {
  it("is backed up and restored into a NATS that has lost it", async () => {
    await keys("create", "--name", "kept")
    const listed = await keys("list")
    assert.include(listed, "kept")
    const backup = await backUp()
    await ask(control, "DELETE")
    await restore(control, backup)
    assert.strictEqual(await keys("list"), listed)
    assert.notMatch(nats.server.log, /violation/i)
  })

  it("is moved from the jobs' account, where an earlier version kept it, with the rights of `admin`", async () => {
    const listed = await keys("list")
    const backup = await backUp()
    await ask(control, "DELETE")
    await restore(data, backup)
    assert.include(await nats.provision(), `${stream}: moved`)
    assert.strictEqual(await keys("list"), listed)
    assert.notMatch(nats.server.log, /violation/i)
  })
})
