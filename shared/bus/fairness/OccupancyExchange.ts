/**
 * Shares the occupancy of every pool between all ingresses: announces this ingress's taken slots and waiting jobs, and receives
 * the announcements of other ingresses and of workers. It sends no message per job.
 */
import type { Msg } from "@nats-io/nats-core"
import { type Workload, workloads } from "../../contract/Operation.ts"
import * as Timings from "../protocol/Timings.ts"
import type { Nats } from "../../nats/Nats.ts"
import { decodeOccupancy, decodeSlots, encodeOccupancy, type PoolAnnouncement } from "./Occupancy.ts"
import { PoolOccupancy } from "./PoolOccupancy.ts"
import * as Subjects from "../protocol/Subjects.ts"

interface Pool {
  readonly workload: Workload
  readonly pool: string
  readonly occupancy: PoolOccupancy
}

interface Announcer {
  readonly pools: ReadonlySet<PoolOccupancy>
  lastHeard: number
}

/** The shortest interval between announcements, in milliseconds; each announced tenant lengthens the next interval by one. */
export const occupancyTickMs = 50

/** Maximum number of immediate announcements, which bursts cause, between two regular ones. */
const maxHurried = 4

/** Maximum number of ingresses, of workers and of pools whose announcements are kept. */
const maxPeers = 256
const maxWorkers = 10_000
const maxPools = 1_000

export class OccupancyExchange {
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  /** Runs when waiting jobs of a pool may have become publishable. */
  readonly #onChange: (occupancy: PoolOccupancy) => void
  readonly #pools = new Map<string, Pool>()
  readonly #peers = new Map<string, Announcer>()
  readonly #workers = new Map<string, Announcer>()
  #announcedAt = Number.NEGATIVE_INFINITY
  #nextAt = 0
  /** Whether a new ingress needs a complete announcement. */
  #hasNewPeer = false
  #isHurrying = false
  #hurried = 0
  /** This ingress's last announcement, until NATS has delivered it to this ingress itself. */
  #latest: Uint8Array | undefined
  /** The announcement whose delivery the next division of the free slots awaits, and since when. */
  #awaited: Uint8Array | undefined
  #awaitedSince = 0

  constructor(nats: Nats["Service"], now: () => number, onChange: (occupancy: PoolOccupancy) => void) {
    this.#nats = nats
    this.#now = now
    this.#onChange = onChange
    nats.subscribe(Subjects.occupancyInbox, (message) => this.#hearPeer(message))
    nats.subscribe(Subjects.slotsInbox, (message) => this.#hearWorker(message))
    this.#announce(true)
    // until a worker has announced itself, its jobs are published in the oldest version
    for (const workload of workloads) nats.outbox.publish(Subjects.announceSubject(workload))
  }

  pool(workload: Workload, name: string): PoolOccupancy {
    const key = `${workload}.${name}`
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      pool = { workload, pool: name, occupancy: new PoolOccupancy(() => this.#hurry()) }
      pool.occupancy.divide(this.#peers.size + 1)
      this.#pools.set(key, pool)
    }
    return pool.occupancy
  }

  /** Whether this ingress has something to announce. */
  get hasNews(): boolean {
    return this.#hasNewPeer ||
      (this.#peers.size > 0 && [...this.#pools.values()].some(({ occupancy }) => occupancy.hasChanged))
  }

  /** Drops ingresses and workers that have been silent for too long. Must not run while NATS is unreachable. */
  expire(): void {
    const before = this.#now() - Timings.announcementMs.expires
    for (const [peer, { lastHeard, pools }] of this.#peers) {
      if (lastHeard >= before) continue
      for (const occupancy of pools) occupancy.setPeer(peer, [])
      this.#peers.delete(peer)
    }
    for (const [worker, { lastHeard }] of this.#workers) if (lastHeard < before) this.workerLost(worker)
  }

  /** Restarts all silences from now. */
  resetSilences(): void {
    const now = this.#now()
    for (const announcer of [...this.#peers.values(), ...this.#workers.values()]) announcer.lastHeard = now
  }

  workerLost(worker: string): void {
    for (const occupancy of this.#workers.get(worker)?.pools ?? []) occupancy.setWorker(worker, 0)
    this.#workers.delete(worker)
  }

  close(): void {
    this.#announce(true)
  }

  #hearPeer(message: Msg): void {
    const peer = Subjects.announcerOf(message.subject)
    if (peer === this.#nats.id) return this.#hearSelf(message.data)
    const known = this.#peers.get(peer)
    if (known === undefined && this.#peers.size >= maxPeers) return
    const announced = decodeOccupancy(message.string())
    if (announced === undefined) return
    this.#hasNewPeer ||= known === undefined
    const pools = new Set<PoolOccupancy>()
    for (const { pool, tenants, workload } of announced) {
      const occupancy = this.#known(workload, pool)
      if (occupancy === undefined) continue
      occupancy.setPeer(peer, tenants)
      pools.add(occupancy)
    }
    for (const occupancy of known?.pools ?? []) if (!pools.has(occupancy)) occupancy.setPeer(peer, [])
    this.#peers.set(peer, { pools, lastHeard: this.#now() })
    for (const occupancy of new Set([...pools, ...known?.pools ?? []])) this.#onChange(occupancy)
  }

  /** What the others announced before it has been delivered, too, so that the free slots are known again. */
  #hearSelf(announcement: Uint8Array): void {
    const isSame = (own: Uint8Array | undefined) => own !== undefined && Buffer.compare(own, announcement) === 0
    if (isSame(this.#latest)) this.#latest = undefined
    if (isSame(this.#awaited)) this.#divide()
  }

  #hearWorker(message: Msg): void {
    const slots = decodeSlots(message.string())
    if (slots === undefined) return
    const { pool, version, worker, workload } = Subjects.parseSlots(message.subject)
    const known = this.#workers.get(worker)
    if (known === undefined && this.#workers.size >= maxWorkers) return
    const occupancy = this.#known(workload, pool)
    if (occupancy === undefined) return
    occupancy.setWorker(worker, slots, version)
    if (known?.pools.has(occupancy)) known.lastHeard = this.#now()
    else this.#workers.set(worker, { pools: new Set([...known?.pools ?? [], occupancy]), lastHeard: this.#now() })
    this.#onChange(occupancy)
  }

  #known(workload: Workload, pool: string): PoolOccupancy | undefined {
    return this.#pools.size < maxPools || this.#pools.has(`${workload}.${pool}`) ? this.pool(workload, pool) : undefined
  }

  /** Announces a burst immediately, before other ingresses take the same slots. */
  #hurry(): void {
    if (this.#isHurrying || this.#hurried >= maxHurried) return
    this.#isHurrying = true
    setImmediate(() => {
      this.#isHurrying = false
      this.#hurried++
      this.#announce(false)
    })
  }

  /**
   * Announces changes, and divides the free slots again as soon as NATS has delivered all that this ingress has announced: if NATS is
   * late, this ingress does not know what the others have taken. Runs every `occupancyTickMs` milliseconds, without open jobs every
   * `idleTickMs`.
   */
  tick(): void {
    const now = this.#now()
    if (now < this.#nextAt || !this.#nats.isConnected()) return
    this.#hurried = 0
    this.#announce(this.#hasNewPeer || now - this.#announcedAt >= Timings.announcementMs.every)
    // an announcement that NATS does not deliver for so long was lost
    if (this.#awaited !== undefined && now - this.#awaitedSince < Timings.announcementMs.every) return
    this.#awaited = this.#latest
    this.#awaitedSince = now
    if (this.#awaited === undefined) this.#divide()
  }

  #divide(): void {
    this.#awaited = undefined
    const ingresses = this.#peers.size + 1
    for (const { occupancy } of this.#pools.values()) {
      occupancy.divide(ingresses)
      if (occupancy.hasWaiting) this.#onChange(occupancy)
    }
  }

  /** Announces all pools if there is news, or `anyway`. */
  #announce(anyway: boolean): void {
    if (!anyway && !this.hasNews) return
    const now = this.#now()
    let tenants = 0
    const pools: Array<PoolAnnouncement> = []
    for (const { occupancy, pool, workload } of this.#pools.values()) {
      const own = occupancy.announced()
      if (own.length === 0) continue
      tenants += own.length
      pools.push({ workload, pool, tenants: own })
    }
    this.#announcedAt = now
    this.#nextAt = now + occupancyTickMs / 2 + tenants
    this.#hasNewPeer = false
    this.#latest = encodeOccupancy(pools)
    this.#nats.outbox.publish(Subjects.occupancySubject(this.#nats.id), this.#latest)
  }
}
