/** Asks the operator's guardrail over HTTP, with a deadline, a limit on concurrent calls, and kept-alive connections. */
import { Clock, Context, Effect, Exit, Layer, Option, Redacted, Schema, Semaphore } from "effect"
import type { Guardrail } from "../catalogue/Guardrail.ts"
import * as SecretReference from "../catalogue/SecretReference.ts"
import { type JobError, ProviderFailed } from "../contract/JobError.ts"
import { bearer } from "../provider/exchange/Exchange.ts"
import { Secrets } from "../provider/transport/Secrets.ts"
import { type Address, Upstream } from "../provider/transport/Upstream.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { type About, encode, Verdict } from "./HookMessage.ts"

/** The guardrail gave no verdict. */
export class NoVerdict extends Schema.TaggedError<NoVerdict>()("NoVerdict", {
  reason: Schema.Literals(["timeout", "unreachable", "status", "malformed", "secret"])
}) {}

export class Hook extends Context.Service<Hook, {
  /** Asks for a verdict. `content`: the JSON of the request, or of the answer's text. */
  readonly ask: (guardrail: Guardrail, about: About, content: Uint8Array) => Effect.Effect<Verdict, NoVerdict>
}>()("shared/guardrail/Hook") {
  static readonly layer = Layer.effect(
    Hook,
    Effect.gen(function*() {
      const upstream = yield* Upstream
      const secrets = yield* Secrets
      const clock = yield* Clock.Clock

      const resolve = (reference: string) =>
        Effect.flatMap(
          secrets.resolve(reference),
          Option.match({
            onNone: () => Effect.fail(new NoVerdict({ reason: "secret" })),
            onSome: (secret) => Effect.succeed(Redacted.value(secret))
          })
        )

      const headersOf = Effect.fnUntraced(function*({ headers, secret }: Guardrail) {
        const all = ["accept", "application/json", "content-type", "application/json"]
        for (const [name, value] of Object.entries(headers)) {
          all.push(name, SecretReference.parse(value) === undefined ? value : yield* resolve(value))
        }
        if (secret !== undefined) all.push("authorization", bearer(yield* resolve(secret)).authorization)
        const traceparent = yield* TraceParent.current
        return traceparent === undefined ? all : [...all, "traceparent", traceparent]
      })

      const call = Effect.fnUntraced(function*(guardrail: Guardrail, body: Uint8Array) {
        const headers = yield* headersOf(guardrail)
        let status = 0
        const pieces: Array<Uint8Array> = []
        let size = 0
        yield* upstream.exchange({
          provider: "guardrail",
          address: addressOf(guardrail),
          headers,
          body,
          firstByteMs: guardrail.timeoutMs,
          idleMs: guardrail.timeoutMs,
          totalMs: guardrail.timeoutMs
        }, (control) => ({
          onHead: (code) => void (status = code),
          onData: (chunk) => {
            pieces.push(chunk)
            size += chunk.length
            if (size > maxAnswerBytes) control.fail(ProviderFailed.malformed("guardrail"))
          }
        })).pipe(Effect.mapError(toNoVerdict))
        if (status !== 200) return yield* new NoVerdict({ reason: "status" })
        return yield* Effect.mapError(
          decodeVerdict(Buffer.concat(pieces).toString()),
          () => new NoVerdict({ reason: "malformed" })
        )
      })

      const turns = new Map<string, Semaphore.Semaphore>()
      const turnsOf = ({ concurrency, url }: Guardrail) => {
        const name = `${concurrency} ${url}`
        let semaphore = turns.get(name)
        if (semaphore === undefined) turns.set(name, semaphore = Semaphore.makeUnsafe(concurrency))
        return semaphore
      }

      return Hook.of({
        ask: (guardrail, about, content) =>
          Effect.suspend(() => {
            const begun = clock.currentTimeMillisUnsafe()
            return Effect.suspend(() => call(guardrail, encode(about, content))).pipe(
              // the guardrail may just have closed a kept-alive connection; repeating a check costs nothing
              Effect.retry({ times: 1, while: ({ reason }) => reason === "unreachable" }),
              turnsOf(guardrail).withPermit,
              Effect.timeoutOrElse({
                duration: guardrail.timeoutMs,
                orElse: () => Effect.fail(new NoVerdict({ reason: "timeout" }))
              }),
              Effect.onExit((exit) =>
                Effect.sync(() => {
                  const outcome = outcomeOf(exit)
                  if (outcome === undefined) return
                  Metrics.update(Metrics.guardrailCalls(outcome), 1)
                  Metrics.update(Metrics.guardrailDuration(), (clock.currentTimeMillisUnsafe() - begun) / 1_000)
                })
              ),
              Span.around(`check ${about.direction}`, { kind: "client" }, Attributes.check(about))
            )
          })
      })
    })
  )
}

/** Maximum size of the guardrail's answer, in bytes. */
const maxAnswerBytes = 64 * 1024

const decodeVerdict = Schema.decodeUnknownEffect(Schema.fromJsonString(Verdict))

const addresses = new WeakMap<Guardrail, Address>()

const addressOf = (guardrail: Guardrail): Address => {
  let address = addresses.get(guardrail)
  if (address === undefined) {
    const { origin, pathname } = new URL(guardrail.url)
    addresses.set(guardrail, address = { origin, path: pathname })
  }
  return address
}

const toNoVerdict = (error: JobError): NoVerdict => {
  if (error._tag === "ProviderTimeout") return new NoVerdict({ reason: "timeout" })
  const isMalformed = error._tag === "ProviderFailed" && error.reason === "malformed"
  return new NoVerdict({ reason: isMalformed ? "malformed" : "unreachable" })
}

/** The outcome of a check, for its span; `undefined` if the request was cancelled. */
const outcomeOf = (exit: Exit.Exit<Verdict, NoVerdict>): string | undefined =>
  Exit.isSuccess(exit) ? exit.value.decision : Option.getOrUndefined(Exit.findErrorOption(exit))?.reason
