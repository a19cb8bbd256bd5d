/**
 * The servers that store a stream or a consumer, and which of them leads: nothing is decided without a majority, a lost leader is
 * replaced after an election, and a leader that was frozen or isolated meanwhile believes for a while that it still leads.
 */
import type { Event } from "../world/World.ts"
import type { Server } from "./Server.ts"

/** How long an election takes after a loss, in milliseconds: servers wait 4 to 9 s, less if the leader has stepped down. */
const electionMs = { least: 500, most: 9_000 }
const handoverMs = { least: 5, most: 500 }
/** How long a former leader that is back believes that it leads, in milliseconds. */
const staleMs = { least: 1, most: 300 }

export interface Change {
  readonly from: Server | undefined
  /** Whether the former leader is alive and does not know yet that it was replaced. */
  readonly isStale: boolean
  /** Whether the former leader has stepped down, so that it may tell its clients. */
  readonly hasSteppedDown: boolean
}

export class Group {
  readonly peers: ReadonlyArray<Server>
  readonly #onChange: (change: Change) => void
  #leader: Server | undefined
  #election: Event | undefined
  /** The servers that know of the leader; the others find no listener. */
  #informed = new Set<Server>()
  /** Former leaders that believe that they lead, and when they stopped leading, in milliseconds of the world. */
  readonly #stale = new Map<Server, number>()

  constructor(peers: ReadonlyArray<Server>, leader: Server, onChange: (change: Change) => void) {
    this.peers = peers
    this.#onChange = onChange
    this.#leader = leader
    this.#inform()
  }

  /** The leader; `undefined` during an election. It may be frozen. */
  get leader(): Server | undefined {
    return this.#leader
  }

  /** The group in the form of servers' answers. */
  get info(): object {
    const leader = this.#leader
    const replicas = this.peers.filter((peer) => peer !== leader)
    return {
      name: "cluster",
      leader: leader?.name,
      replicas: replicas.map(({ isReachable, name }) => ({ name, current: isReachable, active: 0 }))
    }
  }

  /** Whether the group has a leader with a majority, and no other server believes that it leads. */
  get isWhole(): boolean {
    return this.#leader?.isReachable === true && this.hasMajority && this.#stale.size === 0
  }

  get hasMajority(): boolean {
    return 2 * this.peers.filter(({ isReachable }) => isReachable).length > this.peers.length
  }

  /** The servers that answer requests from this server: the leader, and those that believe that they lead. */
  answering(at: Server): ReadonlyArray<Server> {
    const leader = this.#leader !== undefined && this.#informed.has(at) ? [this.#leader] : []
    return [...leader, ...this.#stale.keys()].filter((server) => at.routeTo(server) !== undefined)
  }

  /** How long ago a server that still believes that it leads was replaced, in milliseconds; 0 for all others. */
  behindMs(server: Server): number {
    const since = this.#stale.get(server)
    return since === undefined ? 0 : server.cluster.world.now - since
  }

  /** Reacts to a server that was lost, frozen or isolated, or is back. */
  review(): void {
    const leader = this.#leader
    for (const server of this.#stale.keys()) {
      if (!server.machine.isAlive) this.#stale.delete(server)
      else if (server.isReachable) this.#learns(server)
    }
    if (leader !== undefined && !leader.machine.isAlive) this.#set(undefined, false)
    if (this.isDecided) return
    const [only] = this.peers
    if (this.peers.length === 1) {
      if (only?.isReachable === true) this.#set(only, false)
      return
    }
    this.#elect(electionMs)
  }

  /** Hands over to another leader, as before a graceful stop. */
  stepDown(): void {
    if (this.peers.length === 1 || this.#leader === undefined) return
    this.#set(undefined, true)
    this.#elect(handoverMs)
  }

  /** Tells a server that has started who leads. */
  tell(server: Server): void {
    const leader = this.#leader
    if (leader === undefined || leader === server) return
    leader.cluster.inOrder(leader, server, () => this.#leader === leader ? this.#informed.add(server) : undefined)
  }

  /** Whether the others can reach the leader. */
  get isDecided(): boolean {
    return this.#leader?.isReachable === true
  }

  #elect({ least, most }: { readonly least: number; readonly most: number }): void {
    const world = this.peers[0]?.cluster.world
    if (world === undefined || (this.#election !== undefined && !this.#election.isCancelled)) return
    this.#election = world.after(world.random.between(least, most), undefined, () => {
      this.#election = undefined
      // without a majority, the next election begins when a server returns
      if (this.isDecided || !this.hasMajority) return
      const able = this.peers.filter(({ isReachable }) => isReachable)
      const former = this.#leader
      const isStale = former?.machine.isAlive === true
      if (former !== undefined && isStale) this.#stale.set(former, world.now)
      this.#set(world.random.pick(able), false, isStale)
    })
  }

  #learns(server: Server): void {
    const { world } = server.cluster
    world.after(world.random.between(staleMs.least, staleMs.most), server.machine, () => this.#stale.delete(server))
  }

  #set(leader: Server | undefined, hasSteppedDown: boolean, isStale = false): void {
    const from = this.#leader
    this.#leader = leader
    this.#informed = new Set()
    this.#inform()
    this.#onChange({ from, isStale, hasSteppedDown })
  }

  #inform(): void {
    const leader = this.#leader
    if (leader === undefined) return
    this.#informed.add(leader)
    for (const other of leader.cluster.others(leader)) this.tell(other)
  }
}
