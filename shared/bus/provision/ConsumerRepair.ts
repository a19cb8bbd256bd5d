/**
 * Recreates the consumer of a job queue if it cannot deliver.
 *
 * If servers lose the log of a stream, its sequences start again from 1, but the consumer's own state may survive. That consumer
 * waits for sequences beyond those that it has delivered, so it delivers nothing and its workers are idle. The repair also creates
 * a consumer that is missing from an existing stream: its servers may have lost it, or an earlier repair was interrupted.
 */
import { jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import { attempt, orMissing } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { jobStream, type QueueName, type Version } from "../protocol/Subjects.ts"
import { consumerConfig } from "./JobStreams.ts"

/** How long, right after an election, a stream may report an older state than its consumer, in milliseconds. */
const confirmAfterMs = 1_000

/** The consumer's defect, if any. Reads the consumer before its stream, which can only have advanced in between. */
const defectOf = Effect.fnUntraced(function*(stream: string, pool: string) {
  const { connection } = yield* Nats
  const [consumer, state] = yield* attempt(async () => {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 3_000 })
    const consumer = await orMissing(manager.consumers.info(stream, pool))
    return [consumer, (await orMissing(manager.streams.info(stream)))?.state] as const
  })
  if (state === undefined) return undefined
  if (consumer === undefined) return "missing"
  return consumer.delivered.stream_seq > state.last_seq ? "ahead of its stream" : undefined
})

/** Returns whether it has recreated the consumer. Fails if JetStream does not answer, for example while it elects a leader. */
export const repairConsumer = Effect.fn("ConsumerRepair.repair")(
  function*(queue: QueueName, pool: string, version: Version) {
    const stream = jobStream(queue, version)
    if ((yield* defectOf(stream, pool)) === undefined) return false
    yield* Effect.sleep(confirmAfterMs)
    const defect = yield* defectOf(stream, pool)
    if (defect === undefined) return false
    const { connection } = yield* Nats
    yield* attempt(async () => {
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 3_000 })
      await orMissing(manager.consumers.delete(stream, pool))
      await manager.consumers.add(stream, consumerConfig(queue, pool, version))
    })
    Metrics.update(Metrics.consumersRecreated(queue, pool), 1)
    yield* Effect.logWarning(`the consumer of a job queue was ${defect}: recreated it`, { stream, pool })
    return true
  }
)
