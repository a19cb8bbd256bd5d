/** The scenarios that may show a fault. A seed could produce each of them. */
import { inlineBodyBytes } from "../../../shared/bus/protocol/Timings.ts"
import type { TaskRequest } from "../gateway/TaskClient.ts"
import {
  activeMs,
  extreme,
  type Fault,
  type FaultKind,
  faultOf,
  type Scenario,
  steadily,
  unlimited,
  warmUpMs
} from "../Scenario.ts"
import { Random } from "../world/Random.ts"

/** Turns any scenario into one that may show a fault; `undefined` if it cannot. */
export type Needs = (scenario: Scenario) => Scenario | undefined

const only = (isFit: (scenario: Scenario) => boolean): Needs => (scenario) => isFit(scenario) ? scenario : undefined

/** Applies the needs in turn, each to the result of the one before. */
export const all = (...needs: ReadonlyArray<Needs>): Needs => (scenario) =>
  needs.reduce<Scenario | undefined>((made, need) => made === undefined ? undefined : need(made), scenario)

export const limits = only((scenario) => scenario.limits !== undefined)
export const tasks = only((scenario) => scenario.tasks !== undefined)
const videosAt = (times: ReadonlyArray<number>): ReadonlyArray<TaskRequest> =>
  times.map((at, task) => ({ task, at, tenant: unlimited, makesMs: 300, fate: "made", cancelsAfterMs: undefined }))
/** Videos whose worker dies when the provider has accepted one and the record does not say so yet. */
export const killedAtStarts = all(tasks, (scenario) => {
  const times = [0, 1, 2, 3].map((index) => warmUpMs + 1_000 + 4_500 * index)
  return {
    ...scenario,
    tasks: { workers: 1, requests: videosAt(times) },
    faults: times.map((at): Fault => ({
      kind: "kill video",
      at,
      target: 0,
      ms: 500,
      moment: { text: "\"creation\":", isBefore: true }
    }))
  }
})
/** While videos are requested and end, requests are answered by servers that lack the latest records. */
export const staleRecords = all(tasks, (scenario) => {
  const times = Array.from({ length: 8 }, (_, index) => warmUpMs + 1_000 + 2_000 * index)
  return {
    ...scenario,
    servers: 3,
    tasks: { workers: 1, requests: videosAt(times) },
    faults: times.flatMap((at) =>
      [0, 1, 2].map((target): Fault => ({ kind: "stale bucket", at: at - 10, target, ms: 1_900, moment: undefined }))
    )
  }
})
export const answers = only((scenario) => scenario.answers !== undefined)
/** Workers die when they have recorded that they are about to make a call. */
export const killedAtCalls = all(answers, (scenario) => ({
  ...scenario,
  faults: [0.2, 0.4, 0.6, 0.8].map((part): Fault => ({
    kind: "kill worker",
    at: warmUpMs + part * activeMs,
    target: 0,
    ms: 500,
    moment: { text: "\"task\":null", isBefore: false }
  }))
}))
/** Jobs fail although their workers live. */
export const weather = only((scenario) => (scenario.weather?.length ?? 0) > 0)
export const version2 = only(({ faults, upgradedAt }) => upgradedAt !== undefined && faults.length > 0)
export const fault = (...kinds: ReadonlyArray<FaultKind>): Needs =>
  only(({ faults }) => faults.some(({ kind }) => kinds.includes(kind)))
/** Links are forgotten; see `restMs` in `Simulation.ts`. */
export const rests = only(({ faults }) => faults.length <= 1)

const plain = { limits: undefined, tasks: undefined, answers: undefined, upgradedAt: undefined, weather: undefined }

/** One failure or none, whose cost invariants check exactly. `change` adapts the failure. */
export const aloneWith = (kinds: ReadonlyArray<FaultKind>, change: Partial<Fault>): Needs => (scenario) => {
  const random = new Random(scenario.seed ^ 0xa1_0e_e5)
  const fault = kinds.length === 0
    ? []
    : [{ ...faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(kinds)), ...change }]
  return { ...scenario, ...plain, faults: fault }
}
export const alone = (...kinds: ReadonlyArray<FaultKind>): Needs => aloneWith(kinds, {})
export const cluster = (needs: Needs): Needs => (scenario) => needs({ ...scenario, servers: 3 })
export const severalWorkers: Needs = (scenario) => ({ ...scenario, workers: Math.max(2, scenario.workers) })
/** A stream has no leader for a while, and nothing else fails. */
const election = cluster(alone("no stream leader", "no consumer leader", "kill nats", "freeze nats"))
/** A stream has no leader for a while, and workers have just enough slots for the requests that keep coming. */
export const busyElection = all(election, (scenario) => ({
  ...scenario,
  ingresses: 1,
  workers: 2,
  slots: 8 + scenario.seed % 8,
  requests: steadily(scenario.requests, 190, { patienceMs: 15_000, everyMs: 300 + 20 * (scenario.seed % 10) })
}))
/** The only worker changes its server of NATS, and the leader that it then asks about its queue may be frozen. */
export const busyFreeze = all(cluster(aloneWith(["freeze nats"], { ms: 7_000 })), (scenario) => ({
  ...scenario,
  ingresses: 2,
  workers: 1,
  slots: 80,
  requests: steadily(scenario.requests, 190, { patienceMs: 20_000, everyMs: 30 })
}))
/** Some answers need credit and heartbeats. */
export const extremes: Needs = (scenario) => {
  const random = new Random(scenario.seed ^ 0xe2_7e_3e)
  const requests = scenario.requests.map((request) => extreme(random, request))
  return { ...scenario, weather: undefined, requests }
}
/** One of two ingresses ends while a key has requests running and asks for more at a time than it may have. */
export const deployWithLimits = all(
  limits,
  (scenario) => ({
    ...scenario,
    ...plain,
    limits: {
      ...scenario.limits!,
      keys: scenario.limits!.keys.map((key) =>
        key.tenant === "key_2" ? { ...key, concurrentRequests: 4, requestsPerMinute: null, tokensPerMinute: null } : key
      )
    },
    ingresses: 2,
    requests: scenario.requests.map((each) => ({ ...each, tenant: "key_2", chunks: 20, everyMs: 60 })),
    faults: [0.2, 0.4, 0.6, 0.8].map((part) => ({
      kind: "deploy ingress",
      at: warmUpMs + part * activeMs,
      target: 0,
      ms: 500,
      moment: undefined
    }))
  })
)
/** A worker starts while only one server of a cluster is up. */
export const startsAtOneServer: Needs = (scenario) => {
  const fault = { kind: "kill nats", at: warmUpMs + 3_000, target: 0, ms: 4_000, moment: undefined } as const
  const worker: Fault = { ...fault, kind: "kill worker", at: fault.at + 500, ms: 500 }
  return { ...scenario, ...plain, servers: 3, faults: [fault, { ...fault, target: 1 }, worker] }
}
/** Calls continue for long after their ingress has died. */
export const orphans = all(fault("kill ingress"), extremes)
/** Workers send many messages for an ingress while its connection is broken. */
export const cutWhileBusy = all(aloneWith(["cut ingress"], { moment: undefined }), (scenario) => ({
  ...scenario,
  servers: 1,
  requests: scenario.requests.slice(0, 30).map((each, index) => ({
    ...each,
    at: (scenario.faults[0]?.at ?? 0) - 20 * index,
    chunks: 100,
    everyMs: 20,
    leavesAfterMs: undefined
  }))
}))
/** Answers need credit, and an ingress loses some. */
export const lostCredit = all(
  aloneWith(["cut ingress"], { moment: { text: "Gw-Ctl: credit", isBefore: true } }),
  extremes
)
/** Long answers whose duration the invariants know. */
export const longAlone = all(alone("cut worker", "freeze ingress", "kill worker"), extremes)
/** Connections lose what is in their buffers. */
export const cuts = fault("cut worker", "cut ingress", "cut nats")
/** Workers pull bodies, and have no room for all. */
export const bodies = only(({ requests }) => requests.filter(({ bodyBytes }) => bodyBytes > inlineBodyBytes).length > 2)
/** A worker dies or falls silent when it claims a job, so that the claim may be lost. */
export const lostClaim = only(({ faults }) =>
  faults.some(({ kind, moment }) =>
    /^(kill|freeze|hold) worker$/.test(kind) && /^(claim|ask) id$/.test(moment?.text ?? "")
  )
)
/** A clock changes while jobs wait for the only worker or server of NATS. */
export const clockWhileWaiting = only(({ faults, servers, workers }) =>
  faults.some(({ at, kind }) =>
    kind === "clock of ingress" && faults.some((other) =>
      other.at < at && at < other.at + other.ms &&
      (workers === 1 && /^(kill|freeze|hold|deploy) worker$/.test(other.kind) ||
        servers === 1 && /^(kill|freeze) nats$/.test(other.kind))
    )
  )
)
/** Connections break while a worker's bundles are delayed. */
export const slowBundles: Needs = (scenario) => {
  const slow: Fault = { kind: "slow worker", at: warmUpMs, target: 0, ms: activeMs, moment: undefined }
  return {
    ...scenario,
    ...plain,
    servers: 1,
    ingresses: 1,
    workers: 1,
    requests: steadily(scenario.requests, 40, { chunks: 100, everyMs: 20, chunkBytes: 64, patienceMs: 30_000 }),
    faults: [
      slow,
      ...Array.from({ length: 8 }, (_, index): Fault => {
        const at = warmUpMs + 1_000 + 2_000 * index + 37 * (scenario.seed % 20)
        return { kind: "cut ingress", at, target: 0, ms: 500, moment: undefined }
      })
    ]
  }
}
/** Messages arrive through a server that was away, after they have been sent again through another. */
export const lateBundles = cluster(fault("freeze nats", "isolate nats", "slow routes"))
/** Connections break while servers of NATS are slow, so that ingress asks for bundles again that are on their way. */
export const slowResends: Needs = (scenario) => {
  const at = warmUpMs + 3_000
  const cuts = Array.from({ length: 6 }, (_, index): Fault => ({
    kind: "cut worker",
    at: at + 1_000 + 1_500 * index,
    target: index,
    ms: 1_000,
    moment: { text: "data id", isBefore: true }
  }))
  return {
    ...scenario,
    ...plain,
    servers: 3,
    requests: scenario.requests.slice(0, 30).map((each, index) => ({
      ...each,
      at: at - 30 * index,
      chunks: 100,
      everyMs: 100,
      chunkBytes: 64,
      leavesAfterMs: undefined
    })),
    faults: [{ kind: "slow routes", at, target: 0, ms: 12_000, moment: undefined }, ...cuts]
  }
}
/** Many bytes are lost. */
export const longAndCut = all(cuts, extremes)
/** One of several workers is silent for longer than its jobs may be. */
export const longSilence = all(severalWorkers, aloneWith(["freeze worker", "hold worker"], { ms: 8_500 }))
/** Two NATS servers are frozen at the same time, so that their workers cannot change servers at once; calls continue meanwhile. */
export const frozenServers = all(
  cluster(aloneWith(["freeze nats"], { ms: 4_300 })),
  extremes,
  (scenario) => ({
    ...scenario,
    faults: scenario.faults.flatMap((fault) => [fault, { ...fault, target: fault.target + 1 }])
  })
)
/** A leader is frozen for longer than requests to JetStream may take. */
export const frozenLeader = cluster(aloneWith(["freeze nats"], { ms: 6_000 }))
/** Jobs wait in their stream for the only worker, which died before they were delivered. */
export const absentWorker = all(
  (scenario) => ({ ...scenario, workers: 1, slots: scenario.slots * scenario.workers }),
  aloneWith(["kill worker"], { ms: 8_000, moment: undefined })
)
/** Jobs arrive together and no others follow; the claims of some are lost with their worker. */
export const lastClaimsLost = all(
  severalWorkers,
  aloneWith(["kill worker"], { ms: 8_000, moment: { text: "claim id", isBefore: true } }),
  (scenario) => {
    const at = scenario.faults[0]?.at ?? 0
    const late = (index: number) => at + 100 + 100 * index
    return {
      ...scenario,
      requests: scenario.requests.slice(0, 10).map((each, index) => ({ ...each, at: late(index) }))
    }
  }
)
/** Clients leave long calls, and the worker does not learn of it at once. */
export const lostCancel = all(
  aloneWith(["cut ingress"], { moment: { text: "Gw-Ctl: cancel", isBefore: true } }),
  extremes,
  (scenario) => ({
    ...scenario,
    requests: scenario.requests.map((each) => each.everyMs > 1_000 ? { ...each, leavesAfterMs: 1_500 } : each)
  })
)
const former = (kind: FaultKind, at: number, text: string, isBefore: boolean): Fault => ({
  kind,
  at,
  target: 0,
  ms: 1_000,
  moment: { text, isBefore }
})
/** In version 2 ingress misses the ends of single paid jobs, and the acknowledgements of their messages are lost. */
export const lostEnds: Needs = (scenario) => {
  // groups of four: the first after a pause, and others after it
  const requests = scenario.requests.slice(0, 16).map((request, index) => ({
    ...request,
    at: warmUpMs + 500 + 5_000 * Math.floor(index / 4) + 1_000 * (index % 4),
    isPaid: true,
    chunks: 1,
    everyMs: 50,
    leavesAfterMs: undefined
  }))
  return {
    ...scenario,
    ...plain,
    ingresses: 1,
    workers: 1,
    upgradedAt: warmUpMs + activeMs,
    requests,
    faults: requests.filter((_, index) => index % 4 === 0).flatMap(({ at }) => [
      former("cut worker", at + 20, "+ACK", true),
      // just after the end of the call, which the provider starts after 10 ms
      { ...former("cut ingress", at + 60.5, "", true), moment: undefined }
    ])
  }
}
/**
 * In version 2 workers lose their connections while ingress's agreements to their claims are on their way, and die a little later.
 */
export const lateAgreements: Needs = (scenario) => {
  const times = [0, 1, 2, 3].map((index) => warmUpMs + 1_000 + 5_000 * index)
  return {
    ...scenario,
    ...plain,
    ingresses: 1,
    workers: 1,
    upgradedAt: warmUpMs + activeMs,
    requests: scenario.requests.slice(0, 40).map((request, index) => ({
      ...request,
      at: times[index % times.length]! + 1,
      isPaid: true,
      bodyBytes: 200,
      chunks: 2,
      everyMs: 3_000,
      leavesAfterMs: undefined
    })),
    faults: times.flatMap((at) => [
      { ...former("hold ingress", at, "Gw-Ctl: go neverSent", true), ms: 100 },
      { ...former("cut worker", at + 97, "", true), moment: undefined },
      former("kill worker", at + 98, "Gw-Frame: data", true)
    ])
  }
}
/** The only worker cannot reach NATS, and dies soon after it can again, but long after it has ended calls. */
export const lostEvents: Needs = (scenario) => {
  const at = warmUpMs + 3_000
  const fault = { at, target: 0, ms: 8_000, moment: undefined }
  return {
    ...scenario,
    ...plain,
    workers: 1,
    requests: scenario.requests.map((each, index) => ({ ...each, at: at - 10 * index, chunks: 2, everyMs: 100 })),
    faults: [{ ...fault, kind: "hold worker" }, { ...fault, kind: "kill worker", at: at + 10_600, ms: 300 }]
  }
}
/** A connection loses events, and no usage can be stored for a while after it is back; then the worker dies. */
export const refusedEvents: Needs = (scenario) => {
  const at = warmUpMs + 3_000
  const fault = { at, target: 0, ms: 8_500, moment: undefined }
  return {
    ...scenario,
    ...plain,
    workers: 1,
    requests: scenario.requests.map((each) => ({ ...each, at, isPaid: true, chunks: 1, everyMs: 50, bodyBytes: 200 })),
    faults: [
      { ...fault, kind: "cut worker", moment: { text: "PUB usage", isBefore: true } },
      { ...fault, kind: "full usage", at: at + 2_900 },
      { ...fault, kind: "kill worker", at: at + 11_000, ms: 300 }
    ]
  }
}
/** Calls end at workers that reach their ingress but not the streams, for so long that others write their usage as lost. */
export const isolatedEvents: Needs = all(cluster(severalWorkers), (scenario) => {
  const fault = { kind: "isolate nats", at: warmUpMs + 3_000, target: 0, ms: 25_000, moment: undefined } as const
  const requests = scenario.requests.slice(0, 30).map((each, index) => ({
    ...each,
    at: fault.at - 10 * index,
    isPaid: true,
    bodyBytes: 200,
    chunks: 2,
    everyMs: 500,
    leavesAfterMs: undefined
  }))
  // a failure that comes alone may not cost as much
  const other = { ...fault, kind: "slow routes", ms: 50 } as const
  return { ...scenario, ...plain, ingresses: 1, requests, faults: [fault, other] }
})
/** A worker is silent for too short a time to lose jobs. */
export const shortSilence = all(severalWorkers, aloneWith(["freeze worker", "hold worker"], { ms: 950 }))
/** A silent worker may get the last job; no later jobs show that it is overtaken. */
export const lastJobAway: Needs = all(
  aloneWith(["freeze worker"], { ms: 8_000, moment: undefined }),
  (scenario) => ({
    ...scenario,
    workers: 2,
    requests: scenario.requests.slice(0, 1).map((each) => ({ ...each, at: (scenario.faults[0]?.at ?? 0) + 10 }))
  })
)
/** The answer to a worker's question is lost. */
export const lostGo = aloneWith(["cut ingress"], { moment: { text: "Gw-Ctl: go", isBefore: true } })
/** Nothing fails, and jobs end as soon as they have begun. */
export const peace = all(aloneWith([], {}), (scenario) => ({
  ...scenario,
  requests: scenario.requests.map((each) => ({ ...each, chunks: 1, everyMs: 5 }))
}))
/** The same with a single NATS server, and a rest afterwards. */
export const idle = all(peace, (scenario) => ({ ...scenario, servers: 1 }))
/** Nothing fails, and the only worker does more jobs in a second than it has slots, one after another. */
export const steady = all(peace, (scenario) => ({
  ...scenario,
  workers: 1,
  slots: 8,
  requests: scenario.requests.map((each, index) => ({ ...each, at: warmUpMs + 2_100 + 60 * index, bodyBytes: 200 }))
}))
/** A worker cannot send the first bytes of free calls, so that others take over its jobs while it continues. */
export const heldStarts = all(
  severalWorkers,
  aloneWith(["hold worker"], { ms: 5_000, moment: { text: "data id", isBefore: true } }),
  (scenario) => ({
    ...scenario,
    requests: scenario.requests.slice(0, 40).map((each, index) => ({
      ...each,
      at: (scenario.faults[0]?.at ?? 0) + index,
      isPaid: false,
      chunks: 10,
      everyMs: 1_000,
      leavesAfterMs: undefined
    }))
  })
)
/** Ingress is frozen when it has asked silent workers whether they live. */
export const frozenAfterPing = all(
  aloneWith(["freeze ingress"], { ms: 3_500, moment: { text: "Gw-Ctl: ping", isBefore: false } }),
  (scenario) => ({
    ...scenario,
    ingresses: 1,
    requests: scenario.requests.slice(0, 40).map((each) => ({ ...each, chunks: 3, everyMs: 4_000 }))
  })
)
/** A worker cannot report ended calls for so long that JetStream delivers their jobs to another one. */
export const heldEnds = all(
  severalWorkers,
  aloneWith(["hold worker"], { ms: 7_500, moment: undefined }),
  (scenario) => ({ ...scenario, requests: scenario.requests.map((each) => ({ ...each, isPaid: true })) })
)
/** The only worker dies in calls; the next one is frozen when their jobs come for the third time, and ends when it wakes. */
export const endsAtThirdDelivery: Needs = (scenario) => {
  const at = warmUpMs + 3_000
  const fault = { at, target: 0, ms: 300, moment: undefined }
  return {
    ...scenario,
    ...plain,
    servers: 3,
    workers: 1,
    slots: scenario.slots * scenario.workers,
    requests: scenario.requests.slice(0, 20).map((each, index) => ({
      ...each,
      // the last one ends while its worker is frozen
      at: index < 19 ? at - 30 * index : at + 7_900,
      isPaid: true,
      bodyBytes: 200,
      chunks: index < 19 ? 40 : 4,
      everyMs: 250,
      leavesAfterMs: undefined
    })),
    faults: [
      { ...fault, kind: "kill worker" },
      { ...fault, kind: "freeze worker", at: at + 8_000, ms: 4_000 },
      { ...fault, kind: "deploy worker", at: at + 11_000, moment: { text: "PUB usage", isBefore: false } }
    ]
  }
}
const endsWithoutUsage = (kind: FaultKind, afterMs: number): Needs => (scenario) => {
  const fault = { at: warmUpMs + 8_000, target: 0, ms: 3_000, moment: undefined }
  const requests = scenario.requests.map((each, index) => ({
    ...each,
    at: fault.at - 10 * index,
    chunks: 2,
    everyMs: 50
  }))
  return {
    ...scenario,
    ...plain,
    requests,
    faults: [{ ...fault, kind: "full usage" }, { ...fault, kind, at: fault.at + afterMs }]
  }
}
/** A worker ends while no usage can be stored for a while. */
export const deployWithoutUsage = endsWithoutUsage("deploy worker", 20)
/** The same, but the worker is killed after its calls have ended. */
export const killWithoutUsage = endsWithoutUsage("kill worker", 1_000)
/** All workers end, and then their replacements, before long calls do. */
export const deploysOfAll: Needs = (scenario) => ({
  ...scenario,
  ...plain,
  workers: 2,
  requests: scenario.requests.slice(0, 20).map((each, index) => ({
    ...each,
    at: warmUpMs + 100 * index,
    isPaid: false,
    chunks: 1,
    everyMs: 30_000
  })),
  // the second round ends the workers that have taken over the calls
  faults: [0, 1].flatMap((target) =>
    [3_000, 24_000].map((afterMs) => ({
      kind: "deploy worker",
      at: warmUpMs + afterMs,
      target,
      ms: 500,
      moment: undefined
    }))
  )
})
/** Nothing fails, and clients disconnect during their calls. */
export const leavers = all(aloneWith([], {}), (scenario) => ({
  ...scenario,
  requests: scenario.requests.map((each) => ({ ...each, chunks: 20, everyMs: 100, leavesAfterMs: 500 }))
}))
/** The first provider answers 429 for a while, and requests keep coming at a steady rate. */
export const paced: Needs = (scenario) => ({
  ...scenario,
  ...plain,
  ingresses: 1,
  workers: 1,
  faults: [],
  weather: [{ provider: 0, kind: "429", from: warmUpMs + 5_000, until: warmUpMs + 7_000, share: 1 }],
  requests: steadily(scenario.requests, 150, { everyMs: 20 })
})

/** Calls that may be repeated and take longer than a worker has to end. */
export const outlastDeploys: Needs = all(severalWorkers, alone("deploy worker"), (scenario) => {
  const long = { isPaid: false, bodyBytes: 200, chunks: 1, everyMs: 25_000, patienceMs: 120_000 }
  return {
    ...scenario,
    requests: scenario.requests.slice(0, 20).map((each) => ({ ...each, ...long, leavesAfterMs: undefined }))
  }
})
