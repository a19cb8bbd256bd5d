/** The scenario of a seed: the processes, requests and faults of one simulation, as plain values that can be shrunk. */
import { drillKinds } from "./Drills.ts"
import type { AnswerRequest } from "./gateway/AnswerClient.ts"
import type { Request } from "./gateway/Client.ts"
import { limiterKinds, type Weather, weatherKinds } from "./gateway/HttpProvider.ts"
import type { KeyEdit, PlannedKey } from "./gateway/Keys.ts"
import type { TaskRequest } from "./gateway/TaskClient.ts"
import { mostElectionMs, mostRepairMs, type NatsFaultKind, natsFaultKinds } from "./nats/Faults.ts"
import { Random } from "./world/Random.ts"

export const processFaultKinds = [
  "kill worker",
  "deploy worker",
  "freeze worker",
  "hold worker",
  "cut worker",
  "slow worker",
  "clock of worker",
  "kill ingress",
  "freeze ingress",
  "hold ingress",
  "cut ingress",
  "clock of ingress"
] as const
/** Kinds that are drawn separately, for parts of the gateway that only some seeds have, so that other seeds do not change. */
const laterFaultKinds = ["deploy ingress", "kill video", "freeze video", "hold video", "deploy video"] as const
const [deployIngress, ...videoFaultKinds] = laterFaultKinds
/** Faults of buckets: one server's log is behind, or watches lose messages. */
const bucketFaultKinds = ["stale bucket", "gap in watches"] as const
type BucketFaultKind = typeof bucketFaultKinds[number]
export type FaultKind =
  | typeof processFaultKinds[number]
  | typeof laterFaultKinds[number]
  | NatsFaultKind
  | BucketFaultKind

export const isNatsFault = (kind: FaultKind): kind is NatsFaultKind =>
  !([...processFaultKinds, ...laterFaultKinds, ...bucketFaultKinds] as ReadonlyArray<string>).includes(kind)

export const isBucketFault = (kind: FaultKind): kind is BucketFaultKind =>
  (bucketFaultKinds as ReadonlyArray<string>).includes(kind)

/** The share of faults that are of processes. They outnumber those of NATS, because most bugs of the gateway show at one moment only. */
const processShare = 0.75

export interface Fault {
  readonly kind: FaultKind
  /** In milliseconds of the world. */
  readonly at: number
  /** Chooses one of the processes or servers that are alive then. */
  readonly target: number
  /** The duration, the time until a replacement starts, or how far a clock is set forward or back, in milliseconds. */
  readonly ms: number
  /** If set, the fault strikes when the process writes this text: before, so that the text is lost with the connection, or after. */
  readonly moment: { readonly text: string; readonly isBefore: boolean } | undefined
}

export interface Scenario {
  readonly seed: number
  readonly servers: number
  readonly ingresses: number
  readonly workers: number
  readonly slots: number
  readonly requests: ReadonlyArray<Request>
  readonly faults: ReadonlyArray<Fault>
  /** The keys with limits and what an administrator does to them; absent: requests need no keys. */
  readonly limits: Limits | undefined
  /** Videos; absent: no client asks for any. */
  readonly tasks: Tasks | undefined
  /** Answers in the background, of keys with limits; absent: no client asks for any. */
  readonly answers: ReadonlyArray<AnswerRequest> | undefined
  /** Workers call providers over HTTP, in this weather; absent: they call one that never fails. */
  readonly weather: ReadonlyArray<Weather> | undefined
  /** When the worker of the previous release ends, in milliseconds; absent: there is none. */
  readonly upgradedAt: number | undefined
}

export interface Tasks {
  readonly workers: number
  readonly requests: ReadonlyArray<TaskRequest>
}

export interface Limits {
  /** How long a unit counts against a limit, in milliseconds. */
  readonly windowMs: number
  readonly keys: ReadonlyArray<PlannedKey>
  readonly edits: ReadonlyArray<KeyEdit>
}

/** When requests and faults start, in milliseconds. All processes are ready by then. */
export const warmUpMs = 3_000

/** Requests and faults start within this time after the warm-up, in milliseconds. */
export const activeMs = 20_000

/** How long messages are counted at the end of a rest, in milliseconds. */
export const countedRestMs = 4_000

/** The minimum of all slots together. With so many, no request waits for long without a fault. */
const leastSlots = 40

/** How long a fault waits for the text of its `moment`, in milliseconds. */
export const momentMs = 3_000

/** Texts in the messages of each process at which a fault may strike. */
const moments = {
  worker: [
    "MSG.NEXT",
    "claim id",
    "ask id",
    "PUB r.chat",
    "data id",
    "+ACK",
    "+WPI",
    "PUB usage",
    "heartbeat id"
  ],
  // in version 2: claims, frames, last frames, acknowledgements, usage events
  former: ["Gw-Frame: claim", "Gw-Frame: data", "data [null,{", "+ACK", "PUB usage"],
  // records of tasks, their objects, usage events, and acknowledgements
  video: ["PUB $KV.VIDEO_TASKS", "PUB $O.VIDEO_CONTENT", "PUB usage", "+ACK", "MSG.NEXT"],
  // records of tasks and their pages, and the admission of their work
  answers: ["PUB $KV.TASKS", "PUB admit.", "PUB usage", "+ACK", "-NAK"],
  ingress: [
    "PUB jobs",
    "Gw-Ctl: go",
    "Gw-Ctl: credit",
    "Gw-Ctl: cancel",
    "Gw-Ctl: ping",
    "Gw-Ctl: ack",
    "Gw-Ctl: resend"
  ]
} as const

/** When a fault's direct effects end. After the fault itself, servers may still elect leaders, and the console may repair a queue. */
export const endOf = ({ servers }: Pick<Scenario, "servers">, { at, kind, moment, ms }: Fault): number =>
  at + (moment === undefined ? 0 : momentMs) + (kind.startsWith("clock") ? 0 : ms) +
  (isNatsFault(kind) && servers > 1 ? mostElectionMs : 0) +
  (kind.startsWith("jobs forget") ? mostRepairMs[servers > 1 ? "several" : "one"] : 0)

export const faultOf = (random: Random, at: number, kind: FaultKind): Fault => {
  const [, process] = /(worker|ingress)$/.exec(kind) ?? []
  const texts = process === undefined || kind.startsWith("clock") ? [] : moments[process as keyof typeof moments]
  const isShort = random.chance(0.4)
  return {
    kind,
    at,
    target: random.integer(0, 9),
    ms: kind.startsWith("clock")
      ? random.between(-30_000, 30_000)
      : isShort
      ? random.between(50, 600)
      : random.between(600, 9_000),
    moment: texts.length > 0 && random.chance(0.6)
      ? { text: random.pick(texts), isBefore: random.chance(0.5) }
      : undefined
  }
}

/** This tenant has no limits. */
export const unlimited = "key_1"

/** The tenants of requests. */
const tenants = [unlimited, "key_2", "key_3"]

const limitsOf = (random: Random, requests: ReadonlyArray<Request>): Limits => {
  const windowMs = random.pick([2_000, 10_000, 60_000])
  // somewhat less or more than a tenant asks for in a window
  const share = requests.length / tenants.length * Math.min(1, windowMs / activeMs)
  const around = (usual: number) => Math.max(1, Math.ceil(usual * random.between(0.3, 3)))
  const tokensEach = requests.reduce((sum, { bodyBytes, chunks }) => sum + bodyBytes / 4 + chunks + 1, 0) /
    Math.max(1, requests.length)
  const mostTokens = Math.max(0, ...requests.map(({ chunks }) => chunks + 1))
  return {
    windowMs,
    keys: tenants.map((tenant): PlannedKey => {
      const none = { tenant, concurrentRequests: null, requestsPerMinute: null, tokensPerMinute: null }
      if (tenant === unlimited) return none
      return {
        ...none,
        concurrentRequests: random.chance(0.6) ? random.integer(1, 30) : null,
        ...(random.chance(0.5)
          ? { requestsPerMinute: around(share) }
          : { tokensPerMinute: mostTokens + around(share * tokensEach) })
      }
    }),
    edits: Array.from({ length: random.integer(1, 12) }, (_, edit) => ({
      at: warmUpMs + random.between(0, activeMs),
      tenant: random.pick(tenants),
      weight: 2 + edit
    })).toSorted((a, b) => a.at - b.at)
  }
}

const tasksOf = (random: Random): Tasks => ({
  workers: random.integer(1, 3),
  requests: Array.from({ length: random.integer(1, 8) }, (_, task): TaskRequest => ({
    task,
    at: warmUpMs + random.between(0, activeMs),
    tenant: random.pick(tenants),
    makesMs: random.between(100, 8_000),
    fate: random.chance(0.75) ? "made" : random.pick(["unreachable", "fails", "kills"]),
    cancelsAfterMs: random.chance(0.15) ? random.between(1, 6_000) : undefined
  }))
})

/** The first number of answers' requests, beyond those of other requests. */
const firstAnswer = 10_000

const answersOf = (random: Random): ReadonlyArray<AnswerRequest> =>
  Array.from({ length: random.integer(1, 12) }, (_, at): AnswerRequest => ({
    request: firstAnswer + at,
    at: warmUpMs + random.between(0, activeMs),
    isPaid: random.chance(0.8),
    tenant: random.pick(tenants),
    chunks: random.integer(1, 20),
    everyMs: random.chance(0.5) ? random.between(1, 30) : random.between(100, 600),
    chunkBytes: random.chance(0.1) ? random.integer(10_000, 200_000) : 64,
    cancelsAfterMs: random.chance(0.15) ? random.between(1, 6_000) : undefined
  }))

const answerFaultsOf = (random: Random): ReadonlyArray<Fault> =>
  Array.from({ length: random.integer(0, 4) }, () => ({
    ...faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(processFaultKinds)),
    moment: random.chance(0.7)
      ? { text: random.pick(moments.answers), isBefore: random.chance(0.5) }
      : undefined
  }))

const weatherOf = (random: Random): ReadonlyArray<Weather> =>
  Array.from({ length: random.integer(0, 6) }, () => {
    const from = warmUpMs + random.between(0, activeMs)
    return {
      provider: random.integer(0, 1),
      kind: random.pick(weatherKinds),
      from,
      until: Math.min(warmUpMs + activeMs, from + random.between(200, 8_000)),
      share: random.chance(0.5) ? 1 : random.between(0.1, 1)
    }
  })

/** The first provider limits all calls. */
const limiterOf = (random: Random): ReadonlyArray<Weather> => [{
  provider: 0,
  kind: random.pick(limiterKinds),
  from: 0,
  until: warmUpMs + activeMs,
  share: 1,
  perSecond: random.integer(2, 12)
}]

const videoFaultsOf = (random: Random): ReadonlyArray<Fault> =>
  Array.from({ length: random.integer(0, 3) }, () => ({
    ...faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(videoFaultKinds)),
    moment: random.chance(0.5)
      ? { text: random.pick(moments.video), isBefore: random.chance(0.5) }
      : undefined
  }))

const bucketFaultsOf = (random: Random): ReadonlyArray<Fault> =>
  Array.from({ length: random.integer(0, 3) }, () => ({
    kind: random.pick(bucketFaultKinds),
    at: warmUpMs + random.between(0, activeMs),
    target: random.integer(0, 9),
    ms: random.between(100, 6_000),
    moment: undefined
  }))

/** A worker ends while no usage can be stored. */
const usageFaultsOf = (random: Random): ReadonlyArray<Fault> => {
  const at = warmUpMs + random.between(0, activeMs)
  const ms = random.between(500, 6_000)
  const kind = random.pick(["kill worker", "deploy worker"] as const)
  return [
    { kind: "full usage", at, target: 0, ms, moment: undefined },
    { ...faultOf(random, at + random.between(0, ms), kind), moment: undefined }
  ]
}

/** All workers are gone for so long that requests reach their deadlines in the queue. */
const absencesOf = (random: Random, workers: number): ReadonlyArray<Fault> => {
  const at = warmUpMs + random.between(0, activeMs / 2)
  const ms = random.between(15_000, 25_000)
  return Array.from({ length: workers }, () => ({ kind: "kill worker", at, target: 0, ms, moment: undefined }))
}

const drillOf = (random: Random): Fault =>
  faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(drillKinds))

/** Faults that show version 2's weakness: it loses whatever is in the buffers of a connection that breaks. */
const formerFaultsOf = (random: Random): ReadonlyArray<Fault> =>
  Array.from({ length: random.integer(1, 4) }, () => {
    const kind = random.pick(["cut worker", "cut worker", "cut ingress", "kill worker"] as const)
    const texts = kind === "cut ingress" ? moments.ingress : moments.former
    return {
      ...faultOf(random, warmUpMs + random.between(0, activeMs), kind),
      moment: { text: random.pick(texts), isBefore: random.chance(0.5) }
    }
  })

/** Some answers are so long that they need credit, and some so slow that only heartbeats show that their workers live. */
export const extreme = (random: Random, request: Request): Request =>
  random.chance(0.85)
    ? request
    : random.chance(0.5)
    ? {
      ...request,
      chunks: random.integer(10, 40),
      everyMs: random.between(1, 20),
      chunkBytes: random.integer(50_000, 200_000),
      readMs: random.between(0, 300)
    }
    : { ...request, chunks: random.integer(2, 5), everyMs: random.between(1_000, 12_000) }

/** `count` small requests at a steady rate, with these fields, from clients that stay. */
export const steadily = (
  requests: ReadonlyArray<Request>,
  count: number,
  fields: Partial<Request>
): ReadonlyArray<Request> =>
  Array.from({ length: count }, (_, request) => ({
    ...requests[request % requests.length]!,
    request,
    at: warmUpMs + request * activeMs / count,
    bodyBytes: 200,
    chunks: 2,
    leavesAfterMs: undefined,
    ...fields
  }))

const kindOf = (random: Random): FaultKind =>
  random.chance(processShare) ? random.pick(processFaultKinds) : random.pick(natsFaultKinds)

export const scenarioOf = (seed: number, mostRequests = 200): Scenario => {
  const random = new Random(seed)
  const servers = random.chance(0.6) ? 1 : 3
  const faults = Array.from(
    { length: random.chance(0.1) ? 0 : random.integer(1, 8) },
    () => faultOf(random, warmUpMs + random.between(0, activeMs), kindOf(random))
  )
  const drilling = new Random(seed ^ 0xd_21_11)
  const drill = faults.length === 0 && drilling.chance(0.7) ? [drillOf(drilling)] : []
  const count = random.integer(Math.ceil(mostRequests / 4), mostRequests)
  // half of the requests come just before a fault or together
  const bursts = [...faults.map(({ at }) => at), warmUpMs + random.between(0, activeMs)]
  const usual = Array.from({ length: count }, (_, request): Request => {
    const isLong = random.chance(0.3)
    return {
      request,
      at: random.chance(0.5)
        ? Math.max(warmUpMs, random.pick(bursts) - random.between(0, 1_000))
        : warmUpMs + random.between(0, activeMs),
      isPaid: random.chance(0.6),
      tenant: `key_${random.integer(1, 3)}`,
      patienceMs: random.between(10_000, 30_000),
      bodyBytes: random.chance(0.05) ? random.integer(20_000, 700_000) : random.integer(80, 400),
      chunks: isLong ? random.integer(10, 40) : random.integer(1, 5),
      everyMs: isLong ? random.between(20, 250) : random.between(1, 30),
      chunkBytes: random.chance(0.05) ? random.integer(10_000, 200_000) : 64,
      leavesAfterMs: random.chance(0.08) ? random.between(1, 2_000) : undefined,
      readMs: random.chance(0.1) ? random.between(1, 200) : 0
    }
  })
  const calling = new Random(seed ^ 0xca_11_05)
  const limiting = new Random(seed ^ 0x4_29_42)
  const weather = calling.chance(0.1)
    ? weatherOf(calling)
    : limiting.chance(0.03)
    ? limiterOf(limiting)
    : undefined
  const stretching = new Random(seed ^ 0x10_46_e2)
  // an answer that is slower than a provider may be would fail in any weather
  const isExtreme = weather === undefined && stretching.chance(0.15)
  const steadying = new Random(seed ^ 0x57_ea_d7)
  // so that some requests wait, whatever fails
  const isSteady = drill.length > 0 && steadying.chance(0.3)
  const requests = isSteady
    ? steadily(usual, mostRequests, {
      everyMs: steadying.between(10, 200),
      patienceMs: steadying.between(10_000, 30_000)
    })
    : isExtreme
    ? usual.map((request) => extreme(stretching, request))
    : usual
  const workers = random.integer(1, 4)
  // separate sources, so that each part of a scenario is the same with and without the others
  const limited = new Random(seed ^ 0x1e_57_ed)
  const limits = limited.chance(0.25) ? limitsOf(limited, requests) : undefined
  const deploying = new Random(seed ^ 0xde_91_07)
  const deploys = faults.length > 0 && deploying.chance(0.15)
    ? [faultOf(deploying, warmUpMs + deploying.between(0, activeMs), deployIngress)]
    : []
  const making = new Random(seed ^ 0x71_de_05)
  const tasks = making.chance(0.1) ? tasksOf(making) : undefined
  const videoFaults = tasks === undefined || faults.length === 0 ? [] : videoFaultsOf(making)
  const metering = new Random(seed ^ 0x3e_7e_12)
  const usageFaults = faults.length > 0 && metering.chance(0.08) ? usageFaultsOf(metering) : []
  const upgrading = new Random(seed ^ 0x0_1d_04)
  const upgradedAt = upgrading.chance(0.15) ? warmUpMs + upgrading.between(0, activeMs) : undefined
  const formerFaults = upgradedAt === undefined || faults.length === 0 ? [] : formerFaultsOf(upgrading)
  const leaving = new Random(seed ^ 0xab_5e_47)
  const absences = faults.length > 0 && leaving.chance(0.03) ? absencesOf(leaving, workers) : []
  const answering = new Random(seed ^ 0xa5_3e_12)
  const hasAnswers = limits !== undefined && weather === undefined && answering.chance(0.4)
  const answers = hasAnswers ? answersOf(answering) : undefined
  const answerFaults = hasAnswers && faults.length > 0 ? answerFaultsOf(answering) : []
  const usesBuckets = limits !== undefined || tasks !== undefined
  const bucketFaults = usesBuckets && faults.length > 0 ? bucketFaultsOf(limited) : []
  return {
    seed,
    servers,
    ingresses: random.integer(1, 3),
    workers,
    slots: Math.ceil(random.integer(leastSlots, 2 * leastSlots) / workers),
    requests,
    faults: [
      ...faults,
      ...drill,
      ...deploys,
      ...formerFaults,
      ...videoFaults,
      ...usageFaults,
      ...answerFaults,
      ...absences,
      ...bucketFaults
    ].toSorted((a, b) => a.at - b.at),
    limits,
    tasks,
    answers,
    weather,
    upgradedAt
  }
}
