/**
 * Throttles wrong admin tokens. The right token passes at any time, however many wrong ones came from the same address: the
 * token is compared first, in constant time and at the cost of one SHA-256, and the throttle sees only those that failed.
 *
 * An address gets five quick answers a minute, all addresses together a hundred. Every further wrong token is answered late,
 * and its connection closed. Only so many answers are held back at one time: a flood beyond them costs no memory. The throttle
 * slows guessing down and makes it visible; what makes it hopeless is the length that `Token` asks for.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isIPv6 } from "node:net"
import { TooManyAttempts } from "../api/Errors.ts"

/** Wrong tokens that are answered at once within one window: of one address, and of all. */
const perAddress = 5
const inAll = 100
const windowMs = 60_000

/** How long a further answer is held back, and how many at one time: for one address, and for all. */
const delayMs = 1_000
const heldPerAddress = 10
const heldInAll = 100

/** Addresses remembered at one time; the one that began first is forgotten first. */
const maxAddresses = 10_000

interface Count {
  wrong: number
  held: number
  until: number
}

const all = "all"

export class Attempts extends Context.Service<Attempts, {
  /** Runs the comparison. Fails, after a delay, if it returns `false` after too many wrong tokens. */
  readonly judge: (
    isRight: () => boolean
  ) => Effect.Effect<boolean, TooManyAttempts, HttpServerRequest.HttpServerRequest>
}>()("services/console/Attempts") {
  static readonly layer = Layer.sync(Attempts, () => {
    const counts = new Map<string, Count>()

    const countOf = (name: string, now: number): Count => {
      const count = counts.get(name) ?? { wrong: 0, held: 0, until: 0 }
      if (count.until > now) return count
      count.wrong = 0
      count.until = now + windowMs
      // to the end of the map, whose order is that of the windows
      counts.delete(name)
      counts.set(name, count)
      for (const oldest of counts.keys()) {
        if (counts.size <= maxAddresses) break
        if (oldest !== all) counts.delete(oldest)
      }
      return count
    }

    /** Holds the answer back where there is room to; either way the client needs another connection for its next guess. */
    const refuse = (own: Count, total: Count, retryAfterMs: number) =>
      Effect.suspend(() => {
        if (own.held >= heldPerAddress || total.held >= heldInAll) return Effect.void
        own.held++
        total.held++
        return Effect.ensuring(
          Effect.sleep(delayMs),
          Effect.sync(() => {
            own.held--
            total.held--
          })
        )
      }).pipe(
        Effect.andThen(HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeaders(response, {
            connection: "close",
            "retry-after": String(Math.ceil(retryAfterMs / 1_000))
          }))
        )),
        Effect.andThen(new TooManyAttempts({ retryAfterMs }))
      )

    return Attempts.of({
      judge: (isRight) =>
        Effect.gen(function*() {
          if (isRight()) return true
          const now = yield* Clock.currentTimeMillis
          const { remoteAddress } = yield* HttpServerRequest.HttpServerRequest
          const own = countOf(networkOf(Option.getOrElse(remoteAddress, () => "unknown")), now)
          const total = countOf(all, now)
          const isThrottled = own.wrong >= perAddress || total.wrong >= inAll
          if (!isThrottled) {
            own.wrong++
            total.wrong++
            return false
          }
          return yield* refuse(own, total, (own.wrong >= perAddress ? own : total).until - now)
        })
    })
  })
}

/** A single customer of a provider has a whole /64 of IPv6 addresses. */
const networkOf = (address: string): string => {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address
  const [head = [], tail = []] = address.split("::").map((half) => half.split(":"))
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0")
  return [...head, ...zeros, ...tail].slice(0, 4).join(":")
}
