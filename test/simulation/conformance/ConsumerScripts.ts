/** Scripts about consumers: pull requests, redelivery, and their state after a restart. */
import type { ConsumerConfig } from "@nats-io/jetstream"
import { createConsumer, managerOf, publish, pull, stored, textOf, withStream } from "./Actions.ts"
import type { Client, Script, Stage } from "./Script.ts"

const ackWaitMs = 1_000
/** Long enough for a busy server to notice that a client is dead, in milliseconds. */
const longAckWaitMs = 3_000

/** A script with a client, a stream and a consumer. */
const script = (
  name: string,
  shows: string,
  run: (stage: Stage, client: Client) => Promise<string>,
  config: Partial<ConsumerConfig> = {},
  ackWait = ackWaitMs
): Script =>
  withStream(name, shows, async (stage, client) => {
    await createConsumer(stage, client, ackWait, config)
    await stage.together()
    return run(stage, client)
  })

/** A script in which one job is delivered once. */
const withJob = (
  name: string,
  shows: string,
  run: (
    stage: Stage,
    client: Client,
    delivery: NonNullable<Awaited<ReturnType<ReturnType<typeof pull>["next"]>>>
  ) => Promise<string>,
  config: Partial<ConsumerConfig> = {}
): Script =>
  script(name, shows, async (stage, client) => {
    await publish(stage, client)
    const delivery = await pull(stage, client).next(2_000)
    if (delivery === undefined) return "nothing is delivered"
    return run(stage, client, delivery)
  }, config)

export const consumerScripts: ReadonlyArray<Script> = [
  withJob("a job without an acknowledgement", "ack wait", async (stage, client) => {
    const again = pull(stage, client)
    return `${textOf(await again.next(ackWaitMs / 2))}, then ${textOf(await again.next(2_000))}`
  }),

  withJob("a job in progress", "in-progress", async (stage, client, job) => {
    const again = pull(stage, client)
    for (let at = 0; at < 8; at++) {
      job.settle("+WPI")
      await stage.sleep(ackWaitMs / 4)
    }
    const during = textOf(await again.next(1))
    return `${during}, then ${textOf(await again.next(2_000))}`
  }),

  withJob("a job that is returned", "NAK", async (stage, client, job) => {
    job.settle("-NAK")
    return textOf(await pull(stage, client).next(ackWaitMs / 2))
  }),

  withJob("a job that is returned for later", "NAK with delay", async (stage, client, job) => {
    job.settle(`-NAK {"delay":${1_000 * 1_000_000}}`)
    const again = pull(stage, client)
    return `${textOf(await again.next(700))}, then ${textOf(await again.next(1_500))}`
  }),

  withJob("a job that is delivered too often", "max_deliver leaves an orphan", async (stage, client) => {
    const again = pull(stage, client, { batch: 2 })
    const deliveries = [textOf(await again.next(2_000)), textOf(await again.next(1_000))]
    return `${deliveries.join(", then ")}: ${await stored(stage, client)}`
  }, { max_deliver: 2 }),

  withJob("a job that is acknowledged", "a work queue removes it", async (stage, client, job) => {
    job.settle("+ACK")
    await client.connection.flush()
    await stage.sleep(100)
    return stored(stage, client)
  }),

  withJob("a job whose first delivery is acknowledged after its second", "late acknowledgements count", async (
    stage,
    client,
    job
  ) => {
    const again = pull(stage, client)
    const second = textOf(await again.next(2_000))
    job.settle("+ACK")
    await client.connection.flush()
    await stage.sleep(100)
    return `${second}: ${await stored(stage, client)}`
  }),

  withJob("a job whose first delivery is returned after its second", "late NAKs count", async (stage, client, job) => {
    const second = textOf(await pull(stage, client).next(2_000))
    job.settle("-NAK")
    return `${second}, then ${textOf(await pull(stage, client).next(ackWaitMs / 2))}`
  }),

  withJob("a job whose first delivery is in progress after its second", "late in-progress counts", async (
    stage,
    client,
    job
  ) => {
    const second = textOf(await pull(stage, client).next(2_000))
    const again = pull(stage, client)
    for (let at = 0; at < 8; at++) {
      job.settle("+WPI")
      await stage.sleep(ackWaitMs / 4)
    }
    const during = textOf(await again.next(1))
    return `${second}, then ${during}, then ${textOf(await again.next(2_000))}`
  }),

  script(
    "a job that is due again while only a dead client's request waits",
    "an old server delivers another job again as new",
    async (stage, client) => {
      const dead = await stage.connect()
      await publish(stage, client)
      await pull(stage, client).next(2_000)
      await stage.sleep(longAckWaitMs / 2)
      await publish(stage, client)
      await pull(stage, client).next(2_000)
      pull(stage, dead)
      await dead.connection.flush()
      dead.cut()
      await stage.sleep(longAckWaitMs * 3 / 4)
      const again = await pull(stage, client).next(2_000)
      return `${again?.sequence} ${textOf(again)}`
    },
    {},
    longAckWaitMs
  ),

  script("two pull requests for two jobs each", "they take turns", async (stage, client) => {
    const requests = [pull(stage, client, { batch: 2 }), pull(stage, client, { batch: 2 })]
    for (let at = 0; at < 2; at++) await publish(stage, client)
    const first = await Promise.all(requests.map((request) => request.next(ackWaitMs / 4)))
    return first.map((job) => `${job?.sequence ?? ""} ${textOf(job)}`.trim()).join(", ")
  }),

  withJob("a job whose acknowledgement meets the server's death", "an acknowledged job comes again", async (
    stage,
    client,
    job
  ) => {
    await stage.strike("kill", 0, () => job.settle("+ACK"))
    await stage.heal()
    await stage.sleep(1_000)
    return textOf(await pull(stage, client).next(2_000))
  }),

  withJob("a consumer that is recreated", "a delivered job counts as new, and pulls end", async (stage, client) => {
    const waiting = pull(stage, client)
    await client.connection.flush()
    const manager = await managerOf(client)
    await manager.consumers.delete(stage.name, "jobs")
    const end = textOf(await waiting.next(500))
    await createConsumer(stage, client, ackWaitMs)
    return `${end}, then ${textOf(await pull(stage, client).next(ackWaitMs / 2))}`
  }),

  script("a pull request without a job", "expiry and heartbeats", async (stage, client) => {
    const request = pull(stage, client, { expiresMs: 1_000, heartbeatMs: 400 })
    const end = textOf(await request.next(2_000))
    return `${end} after ${request.heartbeats()} heartbeats`
  }),

  script("more pull requests than allowed", "409", async (stage, client) => {
    const [first, second] = [pull(stage, client), pull(stage, client)]
    const outcomes = [textOf(await first.next(200)), textOf(await second.next(200))]
    return outcomes.join(", ")
  }, { max_waiting: 1 }),

  script("a pull request whose server restarts", "pulls vanish with the leader", async (stage, client) => {
    const request = pull(stage, client)
    await client.connection.flush()
    await stage.strike("kill", 0)
    await stage.heal()
    await stage.sleep(1_000)
    await publish(stage, client)
    return textOf(await request.next(500))
  }),

  script(
    "a pull request of a client whose network is dead",
    "delivery to a dead inbox counts",
    async (stage, client) => {
      const dead = await stage.connect()
      pull(stage, dead)
      await dead.connection.flush()
      dead.hold()
      await publish(stage, client)
      const request = pull(stage, client)
      return `${textOf(await request.next(ackWaitMs / 2))}, then ${textOf(await request.next(2_000))}`
    }
  ),

  script("a pull request of a client that dies", "delivery to a dead inbox counts", async (stage, client) => {
    const dead = await stage.connect()
    pull(stage, dead)
    await dead.connection.flush()
    dead.cut()
    await publish(stage, client)
    return textOf(await pull(stage, client).next(2_000))
  }),

  script(
    "a pull request that waits while the server is frozen",
    "a frozen server delivers late",
    async (stage, client) => {
      const request = pull(stage, client, { expiresMs: 1_000 })
      await client.connection.flush()
      await stage.strike("freeze", 0)
      void publish(stage, client)
      await stage.sleep(2_000)
      await stage.heal()
      return textOf(await request.next(2_000))
    },
    {},
    5_000
  )
]
