/** Invariants of calls over HTTP: when a second call is allowed, and that providers are used again once they recover. */
import { limiterKinds, providerNames } from "./gateway/HttpProvider.ts"
import type { Call } from "./gateway/Provider.ts"
import { activeMs, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"
import { type Check, named, type Violation } from "./Violation.ts"

/** How much later than the worker a provider may learn that a call has ended, in milliseconds. */
const travelMs = 200

/** Why a call may not be followed by this one; `undefined` if it may. */
const objection = (before: Call, after: Call, mayMove: boolean): string | undefined => {
  const name = `call ${after.id} follows call ${before.id}`
  // a job that may be repeated is given to a worker again, possibly the same one
  if (!after.isPaid && mayMove) return undefined
  if (before.worker !== after.worker) return `${name} of another worker`
  // to the worker, a complete answer that was lost looks like no answer
  if (before.outcome === "complete" && before.wasLost !== true) return `${name}, which is complete`
  if ((before.until ?? Number.POSITIVE_INFINITY) > after.from + travelMs) return `${name}, which has not ended`
  // an answer that has begun belongs to the client, unless its bytes were lost with their connection
  if (before.hasArrived === true) return `${name}, which has answered with ${before.made} chunks`
  return undefined
}

/** A second call follows only a failure that the retry rules allow. */
function* secondCallFollowsFailure({ clients, provider, scenario }: Ended): Generator<Violation> {
  if (scenario.weather === undefined) return
  for (const client of clients) {
    const calls = provider.calls.filter(({ request }) => request === client.request.request)
    for (const [at, call] of calls.entries()) {
      const before = calls[at - 1]
      const problem = before === undefined ? undefined : objection(before, call, scenario.faults.length > 0)
      if (problem !== undefined) yield named("a call follows a failure", client, problem)
    }
  }
}

/** The kinds of weather in which a provider answers 429. */
const kinds429: ReadonlySet<string> = new Set(["429", ...limiterKinds])

/** Circuits close: 15 s after it recovered, the first provider answers again. */
function* circuitsClose({ lastProbes, provider, scenario }: Ended): Generator<Violation> {
  // leases are measured by the clocks of workers: by a late one, those of a lost worker last longer, and another provider answers meanwhile
  if (scenario.faults.some(({ kind }) => kind === "clock of worker")) return
  // after a 429, a worker paces its calls for a minute and uses the next provider meanwhile
  if (scenario.weather === undefined || scenario.weather.some(({ kind }) => kinds429.has(kind))) return
  for (const client of lastProbes) {
    const used = provider.calls.filter(({ request }) => request === client.request.request).map((call) => call.provider)
    if (client.outcome !== "complete" || used.length !== 1 || used[0] !== providerNames[0]) {
      yield named("circuits close", client, `is ${client.outcome} after calls to ${used.join(", ") || "none"}`)
    }
  }
}

/** How long after an outage a provider is paced before it gets all calls again, in milliseconds. */
const pacedMs = 4_000

/** The share of the calls that may still go to another provider. */
const mostMoved = 0.25

/** A provider that has answered 429 gets as many calls as it accepted before, unless more are requested. */
function* paceIsKept({ clients, provider, scenario: { faults, weather = [], workers } }: Ended): Generator<Violation> {
  const [bad, ...others] = weather
  if (bad?.kind !== "429" || bad.provider !== 0 || others.length > 0 || faults.length > 0 || workers > 1) return
  const seconds = (from: number, until: number) => {
    const within = clients.filter(({ request: { at } }) => at >= from && at < until)
    return [...Map.groupBy(within, ({ request: { at } }) => Math.floor(at / 1_000)).values()].map((each) => each.length)
  }
  const from = bad.until + pacedMs
  const until = warmUpMs + activeMs
  if (Math.max(0, ...seconds(from, until)) > Math.max(0, ...seconds(0, bad.from))) return
  const later = provider.calls.filter((call) => call.from >= from && call.from < until)
  const moved = later.filter((call) => call.provider === providerNames[1]).length
  if (moved > mostMoved * later.length) {
    yield { invariant: "pace is kept", detail: `${moved} of ${later.length} calls went to the second provider` }
  }
}

/** How many calls a limiter may refuse before a worker, or the one that replaces it, has learned its share, and the part of the others. */
const refusedAtFirst = 12
const mostRefused = 0.25

/** A provider that limits its calls refuses few of them. */
function* limiterIsLearned({ provider, scenario: { faults, weather = [], workers } }: Ended): Generator<Violation> {
  if (!weather.some(({ perSecond }) => perSecond !== undefined)) return
  const calls = provider.calls.filter((call) => call.provider === providerNames[0])
  const refused = calls.filter(({ failure }) => failure === "429").length
  if (refused > refusedAtFirst * (workers + faults.length) + mostRefused * calls.length) {
    yield { invariant: "limiter is learned", detail: `${refused} of ${calls.length} calls were refused` }
  }
}

export const checks: ReadonlyArray<Check> = [secondCallFollowsFailure, circuitsClose, paceIsKept, limiterIsLearned]
