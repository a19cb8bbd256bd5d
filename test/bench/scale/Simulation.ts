/**
 * Simulates the dispatch of jobs event by event: ingress processes with their windows, streams led by one server each, and
 * workers that pull by free slot. The rules are those of `shared/bus`, the costs are measured.
 *
 * Every process and every stream leader is a server with one queue. It works on one item after the other, each for as long as its
 * cost. This is exact for a Node process, and nearly exact for the leader of a stream, which holds a lock.
 */
import type { Costs } from "./Costs.ts"

export interface Topology {
  readonly ingresses: number
  /** Shards of the workload: pools or accounts with a stream each. */
  readonly streams: number
  /** Servers that store each stream. */
  readonly replicas: 1 | 3
  readonly workers: number
  readonly slots: number
}

export interface Load {
  /** Requests per second. */
  readonly rate: number
  /** The provider's mean time in milliseconds, exponentially distributed. */
  readonly serviceMs: number
}

export interface Outcome {
  /** Answers per second in the steady state. */
  readonly rate: number
  /** The time from a request's arrival to the start of its work, in milliseconds. */
  readonly waitP50: number
  readonly waitP99: number
  /** The busy share of the busiest server of each kind. */
  readonly ingressBusy: number
  readonly streamBusy: number
  readonly workerBusy: number
  readonly slotsBusy: number
}

/** The most unclaimed jobs of one ingress in a pool's stream: `GATEWAY_WINDOW`. */
const window = 64
/** The interval of a running job's progress reports to its stream, in milliseconds. */
const workingEveryMs = 2_000
/** One way between two processes in a data centre, in milliseconds. */
const hopMs = 0.15
/** A leader waits for one follower and sends to both: measured as half the throughput of a stream on one server. */
const replicationFactor = 2

/** The length of a run, and of the warm-up not counted, in milliseconds. */
const lengthMs = 4_000
const warmUpMs = 3_000

type Act = () => void

/** An unbounded queue. */
class Line<A> {
  #items: Array<A> = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: A): void {
    this.#items.push(item)
  }

  take(): A {
    const item = this.#items[this.#head++]!
    if (this.#head > 1_024 && this.#head > this.#items.length / 2) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}

/** The future events by time: a binary heap. */
class Agenda {
  readonly #times: Array<number> = []
  readonly #acts: Array<Act> = []
  now = 0

  at(time: number, act: Act): void {
    let index = this.#times.length
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (this.#times[parent]! <= time) break
      this.#times[index] = this.#times[parent]!
      this.#acts[index] = this.#acts[parent]!
      index = parent
    }
    this.#times[index] = time
    this.#acts[index] = act
  }

  /** Runs until this time, and leaves later events. */
  run(until: number): void {
    while (this.#times.length > 0 && this.#times[0]! <= until) {
      this.now = this.#times[0]!
      this.#take()()
    }
    this.now = until
  }

  #take(): Act {
    const first = this.#acts[0]!
    const time = this.#times.pop()!
    const act = this.#acts.pop()!
    const size = this.#times.length
    if (size === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= size) break
      if (child + 1 < size && this.#times[child + 1]! < this.#times[child]!) child++
      if (this.#times[child]! >= time) break
      this.#times[index] = this.#times[child]!
      this.#acts[index] = this.#acts[child]!
      index = child
    }
    this.#times[index] = time
    this.#acts[index] = act
    return first
  }
}

/** Does one piece of work after the other. */
class Server {
  readonly #agenda: Agenda
  #freeAt = 0
  /** Milliseconds of work since the warm-up. */
  busy = 0

  constructor(agenda: Agenda) {
    this.#agenda = agenda
  }

  /** Works for this many microseconds, then acts. */
  work(micros: number, act?: Act): void {
    const begin = Math.max(this.#agenda.now, this.#freeAt)
    this.#freeAt = begin + micros / 1_000
    const counted = Math.min(this.#freeAt, lengthMs) - Math.max(begin, warmUpMs)
    if (counted > 0) this.busy += counted
    if (act !== undefined) this.#agenda.at(this.#freeAt, act)
  }

  get share(): number {
    return this.busy / (lengthMs - warmUpMs)
  }
}

interface Job {
  readonly arrived: number
  readonly ingress: Ingress
  readonly stream: Stream
}

interface Ingress {
  readonly server: Server
  /** Per stream: jobs waiting here, and the number unclaimed there. */
  readonly waiting: Map<Stream, Line<Job>>
  readonly unclaimed: Map<Stream, number>
}

interface Stream {
  readonly server: Server
  readonly jobs: Line<Job>
  /** Open pull requests, each for a number of jobs. */
  readonly pulls: Line<{ readonly worker: Worker; batch: number }>
}

interface Worker {
  readonly server: Server
  readonly stream: Stream
  free: number
  /** Whether slots freed in this turn are about to be requested. */
  asked: boolean
}

const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

/** The same numbers in every run: a linear congruential generator. */
const randomFrom = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state + 1) / 4_294_967_297
  }
}

export const simulate = (costs: Costs, topology: Topology, load: Load): Outcome => {
  const agenda = new Agenda()
  const random = randomFrom(1)
  const exponential = (mean: number) => -mean * Math.log(random())
  const many = <A>(count: number, make: (index: number) => A) =>
    Array.from({ length: count }, (_, index) => make(index))
  const kept = topology.replicas === 3 ? replicationFactor : 1

  const streams = many(topology.streams, (): Stream => ({
    server: new Server(agenda),
    jobs: new Line(),
    pulls: new Line()
  }))
  const ingresses = many(topology.ingresses, (): Ingress => ({
    server: new Server(agenda),
    waiting: new Map(streams.map((stream) => [stream, new Line()])),
    unclaimed: new Map(streams.map((stream) => [stream, 0]))
  }))
  const workers = many(topology.workers, (index): Worker => ({
    server: new Server(agenda),
    stream: streams[index % streams.length]!,
    free: topology.slots,
    asked: false
  }))
  const waits: Array<number> = []
  let answered = 0
  let slotTime = 0

  const pull = (worker: Worker) => {
    if (worker.asked || worker.free === 0) return
    worker.asked = true
    // slots freed within a turn are requested together
    agenda.at(agenda.now + hopMs, () => {
      worker.asked = false
      const batch = worker.free
      worker.free = 0
      if (batch === 0) return
      worker.stream.pulls.push({ worker, batch })
      give(worker.stream)
    })
  }
  /** Delivers jobs to the pull requests, in turns. */
  const give = (stream: Stream) => {
    while (stream.jobs.length > 0 && stream.pulls.length > 0) {
      const job = stream.jobs.take()
      const request = stream.pulls.take()
      if (--request.batch > 0) stream.pulls.push(request)
      stream.server.work(costs.deliver, () => agenda.at(agenda.now + hopMs, () => begin(job, request.worker)))
    }
  }
  const begin = (job: Job, worker: Worker) => {
    // the claim reaches ingress, and the window has room
    agenda.at(agenda.now + 2 * hopMs, () => {
      job.ingress.unclaimed.set(job.stream, job.ingress.unclaimed.get(job.stream)! - 1)
      admit(job.ingress, job.stream)
    })
    worker.server.work(costs.worker, () => {
      if (agenda.now > warmUpMs) waits.push(agenda.now - job.arrived)
      const service = exponential(load.serviceMs)
      slotTime += Math.max(0, Math.min(agenda.now + service, lengthMs) - Math.max(agenda.now, warmUpMs))
      for (let at = workingEveryMs; at < service; at += workingEveryMs) {
        agenda.at(agenda.now + at, () => job.stream.server.work(costs.acknowledge))
      }
      agenda.at(agenda.now + service, () => finish(job, worker))
    })
  }
  const finish = (job: Job, worker: Worker) => {
    job.stream.server.work(costs.acknowledge * kept)
    worker.free++
    pull(worker)
    job.ingress.server.work(costs.ingress / 2, () => {
      if (agenda.now > warmUpMs) answered++
    })
  }
  const admit = (ingress: Ingress, stream: Stream) => {
    const waiting = ingress.waiting.get(stream)!
    while (waiting.length > 0 && ingress.unclaimed.get(stream)! < window) {
      const job = waiting.take()
      ingress.unclaimed.set(stream, ingress.unclaimed.get(stream)! + 1)
      agenda.at(agenda.now + hopMs, () =>
        stream.server.work(costs.store * kept, () => {
          stream.jobs.push(job)
          give(stream)
        }))
    }
  }
  const arrive = () => {
    agenda.at(agenda.now + exponential(1_000 / load.rate), arrive)
    const ingress = ingresses[Math.floor(random() * ingresses.length)]!
    const stream = streams[Math.floor(random() * streams.length)]!
    const job: Job = { arrived: agenda.now, ingress, stream }
    ingress.server.work(costs.ingress / 2, () => {
      ingress.waiting.get(stream)!.push(job)
      admit(ingress, stream)
    })
  }

  for (const worker of workers) pull(worker)
  agenda.at(0, arrive)
  agenda.run(lengthMs)

  waits.sort((left, right) => left - right)
  const busiest = (servers: ReadonlyArray<{ readonly server: Server }>) =>
    Math.max(...servers.map(({ server }) => server.share))
  const seconds = (lengthMs - warmUpMs) / 1_000
  return {
    rate: answered / seconds,
    waitP50: percentile(waits, 0.5),
    waitP99: percentile(waits, 0.99),
    ingressBusy: busiest(ingresses),
    streamBusy: busiest(streams),
    workerBusy: busiest(workers),
    slotsBusy: slotTime / ((lengthMs - warmUpMs) * topology.workers * topology.slots)
  }
}
