/** Messages of the outbox arrive unchanged, and turns of the event loop share writes. */
import { assert, describe, it } from "@effect/vitest"
import type { NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Schema } from "effect"
import { Socket } from "node:net"
import { afterAll, beforeAll, vi } from "vitest"
import { decodeHeader, encodeHeaders, Outbox } from "../../../shared/nats/Outbox.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

let server: NatsServer
let connection: NatsConnection
let outbox: Outbox
const refused: Array<string> = []
beforeAll(async () => {
  server = await NatsServer.start()
  connection = await connect({ servers: server.url })
  outbox = new Outbox(connection, (subject) => refused.push(subject))
})
afterAll(async () => {
  await connection.close()
  await server.remove()
})

/** Sends one message per set of headers through the server and back. */
const roundTrip = async (all: ReadonlyArray<Record<string, string>>) => {
  const subscription = connection.subscribe("headers", { max: all.length })
  for (const headers of all) outbox.publish("headers", undefined, encodeHeaders(headers))
  const received: Array<Record<string, string>> = []
  for await (const message of subscription) {
    received.push(Object.fromEntries(
      (message.headers?.keys() ?? []).map((name) => [name, decodeHeader(message.headers?.get(name) ?? "")])
    ))
  }
  return received
}

const hostile = [
  "two\r\nGw-Injected: 1",
  "\r\n\r\npayload",
  "\n",
  "\0\u0001\u007f",
  "100%",
  "%0d%0a",
  "%",
  "  leading",
  "trailing  ",
  "\ttabs\t",
  " ",
  "",
  "naïve 漢字 🙂",
  "\u2028\u0085",
  "a: b, c; d=\"e\"",
  "cut off \ud83d in the middle"
]

describe("headers", () => {
  it("arrive unchanged, whatever they contain", async () => {
    const all = hostile.map((value) => ({ "Gw-Before": "1", "Gw-Value": value, "Gw-After": "2" }))
    const wellFormed = all.map((headers) => ({ ...headers, "Gw-Value": headers["Gw-Value"].toWellFormed() }))
    assert.deepStrictEqual(await roundTrip(all), wellFormed)
  })

  it.prop("never break their line, and are read back", [Schema.String], ([value]) => {
    const [status, line, ...rest] = encodeHeaders({ "Gw-Value": value }).split("\r\n")
    assert.strictEqual(status, "NATS/1.0")
    assert.deepStrictEqual(rest, ["", ""])
    assert.match(line!, /^Gw-Value: [\x20-\x7e]*$/)
    assert.strictEqual(decodeHeader(line!.slice("Gw-Value:".length).trim()), value.toWellFormed())
  }, { arbitrary: { runs: 2_000 } })

  it("omit absent values", () => {
    assert.strictEqual(encodeHeaders({ one: 1, two: undefined, three: "x" }), "NATS/1.0\r\none: 1\r\nthree: x\r\n\r\n")
  })

  it("of another client are read unchanged", () => {
    assert.deepStrictEqual(["50% off", "%e4", "plain"].map(decodeHeader), ["50% off", "%e4", "plain"])
  })
})

/** Settles after the microtasks queued now and those that they queue. */
const microtasks = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** The client's answer to the server's pings, which it writes by itself. */
const pong = Buffer.from("PONG\r\n")

/** Records the length of each write to the server from here on, except pongs. */
const watchWrites = () => {
  const port = Number(new URL(server.url).port)
  const writes: Array<number> = []
  const write = Socket.prototype.write
  const spy = vi.spyOn(Socket.prototype, "write").mockImplementation(
    function(this: Socket, ...call: Array<unknown>) {
      const bytes = call[0] as Uint8Array
      if (this.remotePort === port && !pong.equals(bytes)) writes.push(bytes.length)
      return Reflect.apply(write, this, call)
    }
  )
  return { writes, restore: () => spy.mockRestore() }
}

const line = "PUB nobody 10\r\n0123456789\r\n".length
const publish = () => outbox.publish("nobody", Buffer.from("0123456789"))

/** Publishes so often, each time in another microtask. */
const publishEach = async (times: number) => {
  for (let count = 0; count < times; count++) {
    publish()
    await Promise.resolve()
  }
}

/** Publishes now and then once in each of so many turns. Returns the lengths of the writes after each turn. */
const writesOf = async (first: () => Promise<unknown>, turns: number) => {
  const { restore, writes } = watchWrites()
  const seen: Array<ReadonlyArray<number>> = []
  try {
    await first()
    await microtasks()
    for (let turn = 0; turn <= turns + 1; turn++) {
      seen.push([...writes])
      await nextTurn()
      await microtasks()
      if (turn < turns) publish()
    }
    return [...seen, [...writes]]
  } finally {
    restore()
  }
}

describe("a send", () => {
  it("follows the turn of a lone message", async () => {
    assert.deepStrictEqual((await writesOf(async () => publish(), 0))[1], [line])
  })

  it("is one write for the turns that each add a message, whichever code publishes in them", async () => {
    const publishers = () => Promise.all([publishEach(2), publishEach(3)])
    assert.deepStrictEqual(await writesOf(publishers, 2), [[], [], [], [], [7 * line]])
  })

  it("waits for no further turn when it has enough messages, so that their receivers can begin", async () => {
    const publishers = () => Promise.all([publishEach(5), publishEach(5), publishEach(5)])
    assert.deepStrictEqual((await writesOf(publishers, 2)).slice(0, 2), [[], [15 * line]])
  })

  it("waits for five turns at the most", async () => {
    const seen = await writesOf(async () => [publish(), publish()], 5)
    assert.deepStrictEqual(seen.slice(0, 6), [[], [], [], [], [], [6 * line]])
  })

  it("ends after its producers ran, and then reports that everything is written", async () => {
    const subscription = connection.subscribe("order", { max: 3 })
    const order: Array<string> = []
    const before = connection.stats().outMsgs
    outbox.publish("order", Buffer.from("published"))
    outbox.afterFlush(() => order.push(`written: ${connection.stats().outMsgs - before}`))
    outbox.beforeFlush(() => {
      order.push("produced")
      outbox.publish("order", Buffer.from("produced"))
    })
    outbox.publish("order", Buffer.from("published later"))
    assert.deepStrictEqual(order, [])
    const received = (await Array.fromAsync(subscription)).map((message) => message.string())
    assert.deepStrictEqual(received, ["published", "published later", "produced"])
    assert.deepStrictEqual(order, ["produced", "written: 3"])
  })

  it("runs what goes along with the send last, and sends it first", async () => {
    const subscription = connection.subscribe("along", { max: 3 })
    const gathered: Array<string> = []
    outbox.withFlush(() => outbox.publish("along", Buffer.from(gathered.join(" and "))))
    outbox.beforeFlush(() => {
      gathered.push("one")
      outbox.publish("along", Buffer.from("produced"))
    })
    outbox.linger(() => gathered.push("two"))
    outbox.publish("along", Buffer.from("published"))
    const received = (await Array.fromAsync(subscription)).map((message) => message.string())
    assert.deepStrictEqual(received, ["one and two", "published", "produced"])
  })

  it("loses nothing that is published while it ends", async () => {
    const subscription = connection.subscribe("chain", { max: 3 })
    outbox.beforeFlush(() => outbox.beforeFlush(() => outbox.publish("chain", Buffer.from("second"))))
    outbox.publish("chain", Buffer.from("first"))
    outbox.afterFlush(() => outbox.publish("chain", Buffer.from("third")))
    const received = (await Array.fromAsync(subscription)).map((message) => message.string())
    assert.deepStrictEqual(received.toSorted(), ["first", "second", "third"])
  })

  it("continues after the client rejects a message", async () => {
    const subscription = connection.subscribe("kept", { max: 2 })
    outbox.publish("kept", Buffer.from("before"))
    outbox.publish("too.large", Buffer.alloc(2 * 1024 * 1024))
    outbox.publish("kept", Buffer.from("after"))
    const received = (await Array.fromAsync(subscription)).map((message) => message.string())
    assert.deepStrictEqual(received, ["before", "after"])
    assert.deepStrictEqual(refused.splice(0), ["too.large"])
  })
})

describe("a message that may wait", () => {
  /** The messages that arrive, and the length of the first write. */
  const said = async (subject: string, count: number, say: () => void) => {
    const subscription = connection.subscribe(subject, { max: count })
    await connection.flush()
    const { restore, writes } = watchWrites()
    try {
      say()
      return { received: (await Array.fromAsync(subscription)).map((message) => message.string()), written: writes[0] }
    } finally {
      restore()
    }
  }

  it("leaves with the next one, in its write", async () => {
    const { received, written } = await said("together", 3, () => {
      outbox.linger(() => outbox.publish("together", Buffer.from("one")))
      outbox.linger(() => outbox.publish("together", Buffer.from("two")))
      outbox.publish("together", Buffer.from("now"))
    })
    assert.deepStrictEqual(received, ["now", "one", "two"])
    assert.strictEqual(written, 3 * "PUB together 3\r\nnow\r\n".length)
  })

  it("leaves by itself if no other follows, in one write with all that wait", async () => {
    const { received, written } = await said("alone", 2, () => {
      outbox.linger(() => outbox.publish("alone", Buffer.from("one")))
      outbox.linger(() => outbox.publish("alone", Buffer.from("two")))
    })
    assert.deepStrictEqual(received, ["one", "two"])
    assert.strictEqual(written, 2 * "PUB alone 3\r\none\r\n".length)
  })

  it("is kept while sending is suspended", async () => {
    const subscription = connection.subscribe("away", { max: 2 })
    outbox.linger(() => outbox.publish("away", Buffer.from("before")))
    outbox.hold()
    outbox.linger(() => outbox.publish("away", Buffer.from("while")))
    outbox.releaseAfter(20)
    const received = (await Array.fromAsync(subscription)).map((message) => message.string())
    assert.deepStrictEqual(received, ["before", "while"])
  })
})
