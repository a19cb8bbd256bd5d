/** Scripts about streams: ids, limits, ages, and their state after a restart. */
import { DiscardPolicy, StorageType } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { createConsumer, managerOf, patiently, publish, pull, stored, textOf, withStream as script } from "./Actions.ts"
import type { Client, Script, Stage } from "./Script.ts"

/** Publishes one message after the other. */
const publishAll = async (stage: Stage, client: Client, count: number): Promise<string> => {
  const outcomes: Array<string> = []
  for (let at = 0; at < count; at++) outcomes.push(await publish(stage, client))
  return outcomes.join(", ")
}

/** Kills the server and starts it again. */
const restart = async (stage: Stage): Promise<void> => {
  await stage.strike("kill", 0)
  await stage.heal()
}

/** Publishes a message, and acknowledges it. */
const publishAndSettle = async (stage: Stage, client: Client): Promise<void> => {
  await createConsumer(stage, client, 5_000)
  await publish(stage, client, "a")
  const delivery = await pull(stage, client).next(2_000)
  delivery?.settle("+ACK")
  await client.connection.flush()
  await stage.sleep(100)
}

export const streamScripts: ReadonlyArray<Script> = [
  {
    ...script("a message to no stream", "503", async () => ""),
    run: async (stage) => publish(stage, await stage.connect())
  },

  script("one id twice, and again after the window", "the duplicate window", async (stage, client) => {
    const within = [await publish(stage, client, "a"), await publish(stage, client, "a")]
    await stage.sleep(2_500)
    return [...within, await publish(stage, client, "a")].join(", ")
  }, { duplicate_window: nanos(1_000) }),

  script("the id of a message that was acknowledged", "the duplicate window", async (stage, client) => {
    await publishAndSettle(stage, client)
    return publish(stage, client, "a")
  }),

  script(
    "the id of a message that was acknowledged, after a restart",
    "a restart forgets ids",
    async (stage, client) => {
      await publishAndSettle(stage, client)
      await restart(stage)
      return patiently(stage, () => firmly(publish(stage, client, "a")))
    }
  ),

  script("the id of a stored message after a restart", "a restart keeps ids", async (stage, client) => {
    await publish(stage, client, "a")
    await restart(stage)
    return patiently(stage, () => firmly(publish(stage, client, "a")))
  }),

  script("more messages than allowed", "full", (stage, client) => publishAll(stage, client, 3), { max_msgs: 2 }),

  script("more bytes than allowed", "full, or an old server drops the oldest message", async (stage, client) => {
    const outcomes = await publishAll(stage, client, 3)
    return `${outcomes}: ${await stored(stage, client)}`
  }, { max_bytes: 110 }),

  script("more messages than kept", "full", async (stage, client) => {
    const outcomes = await publishAll(stage, client, 3)
    return `${outcomes}: ${await stored(stage, client)}`
  }, { max_msgs: 2, discard: DiscardPolicy.Old }),

  script("an old message", "age", async (stage, client) => {
    await publish(stage, client)
    await stage.sleep(1_500)
    return stored(stage, client)
  }, { max_age: nanos(500) }),

  script("a stream in memory after a restart", "the whole log gone", async (stage, client) => {
    await publish(stage, client)
    await restart(stage)
    const manager = await managerOf(client)
    return patiently(stage, () =>
      manager.streams.info(stage.name).then(
        ({ state }) => `${state.messages} of ${state.last_seq}`,
        (error) => /not found/.test(String(error)) ? "not found" : Promise.reject(error)
      ))
  }, { storage: StorageType.Memory }),

  script("a confirmed message after a restart", "what is on disk stays", async (stage, client) => {
    await publish(stage, client)
    await restart(stage)
    return stored(stage, client)
  }),

  script("a message while the server dies", "a lost acknowledgement", async (stage, client) => {
    let answer: Promise<string> | undefined
    await stage.strike("kill", 0, () => void (answer = publish(stage, client, "a")))
    await stage.heal()
    return `${kindOf(await answer!)}: ${await stored(stage, client)}`
  }),

  script("a message while the server is frozen", "silence", async (stage, client) => {
    await stage.strike("freeze", 0)
    const answer = await publish(stage, client, "a", 300)
    await stage.heal()
    await stage.sleep(200)
    return `${answer}: ${await stored(stage, client)}`
  }),

  script("a delivered message after a restart", "deliveries are counted on disk, or not", async (stage, client) => {
    await createConsumer(stage, client, 2_000)
    await publish(stage, client)
    const first = textOf(await pull(stage, client).next(2_000))
    await restart(stage)
    await patiently(stage, () => client.connection.flush())
    const again = pull(stage, client)
    return `${first}, then ${textOf(await again.next(4_000))}`
  })
]

/** Fails unless JetStream has answered. */
const firmly = async (outcome: Promise<string>): Promise<string> => {
  const seen = await outcome
  if (!/^(stored|duplicate)/.test(seen)) throw new Error(seen)
  return seen
}

/** The connection may notice the death in several ways. */
const kindOf = (answer: string): string => /^(stored|duplicate)/.test(answer) ? "answered" : "not answered"
