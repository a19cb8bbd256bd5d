/** Lets the processes of the gateway agree on edits of the catalogue over NATS. */
import { Effect, Layer, Option, Schema } from "effect"
import { hostname } from "node:os"
import { catalogueSubject } from "../bus/protocol/Subjects.ts"
import { Agreement, Edit, objectionTo } from "../catalogue/file/Agreement.ts"
import { attempt } from "../nats/JetStream.ts"
import { Nats } from "../nats/Nats.ts"
import { ServiceName } from "../telemetry/ServiceName.ts"

/** A question whether others object to an edit, or, if `isAgreed`, the news that no process does. */
const Message = Schema.fromJsonString(Schema.Struct({ ...Edit.fields, isAgreed: Schema.optionalKey(Schema.Boolean) }))

const Answer = Schema.fromJsonString(Schema.Struct({ objection: Schema.optionalKey(Schema.String) }))

const encodeMessage = Schema.encodeSync(Message)
const decodeMessage = Schema.decodeUnknownOption(Message)
const encodeAnswer = Schema.encodeSync(Answer)
const decodeAnswer = Schema.decodeUnknownOption(Answer)

/** How long to wait for answers, in milliseconds. A process that is silent for as long is dead or frozen. */
const answersWithinMs = 1_000

/** At most this much of an objection is sent, in characters: a file may have thousands of mistakes. */
const maxObjection = 4_096

export const layer = Layer.effect(
  Agreement,
  Effect.gen(function*() {
    const nats = yield* Nats
    const service = yield* ServiceName
    const self = `${service} (${hostname()}, ${process.pid})`

    const ask = (edit: Edit) =>
      attempt(async () => {
        const answers = await nats.connection.requestMany(catalogueSubject, encodeMessage(edit), {
          strategy: "timer",
          maxWait: answersWithinMs
        })
        const objections: Array<string> = []
        let count = 0
        for await (const message of answers) {
          const answer = decodeAnswer(message.string())
          if (Option.isNone(answer)) continue
          count++
          if (answer.value.objection !== undefined) objections.push(answer.value.objection)
        }
        // the process answers itself, too
        return count === 0 ? ["NATS does not deliver the question to the other processes"] : objections
      })

    return {
      join: (opinion, agreed) =>
        Effect.acquireRelease(
          Effect.sync(() =>
            nats.subscribe(catalogueSubject, (message) => {
              const received = decodeMessage(message.string())
              if (Option.isNone(received)) return
              if (received.value.isAgreed === true) return agreed(received.value.to)
              const objection = objectionTo(received.value, opinion())
              message.respond(
                encodeAnswer(
                  objection === undefined ? {} : { objection: `${self} ${objection}`.slice(0, maxObjection) }
                )
              )
            })
          ),
          (subscription) => Effect.sync(() => subscription.unsubscribe())
        ),
      objections: (edit) =>
        ask(edit).pipe(
          Effect.catch(({ detail }) =>
            Effect.succeed([`NATS does not take the question to the other processes: ${detail}`])
          )
        ),
      announce: (edit) =>
        Effect.sync(() =>
          nats.outbox.publishNow(catalogueSubject, Buffer.from(encodeMessage({ ...edit, isAgreed: true })))
        )
    }
  })
)
