/**
 * The pods of NATS's chart as real nats-servers with the chart's configuration, but addresses of this machine. A pod that is created
 * again by its StatefulSet gets the disk and the port of its predecessor.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NatsServer, nextPort } from "../../fixture/nats/NatsServer.ts"
import { newNatsServer } from "../../fixture/nats/NewNatsServer.ts"
import type { ApiPod } from "./ApiPod.ts"
import type { Inputs } from "./PodInputs.ts"
import type { PodProcess } from "./PodProcess.ts"

const project = join(import.meta.dirname, "../../..")

/** The port of the chart's monitoring. */
export const monitoringPort = 8222

interface Place {
  /** An address of the loopback interface, as each pod has its own. */
  readonly host: string
  readonly routes: number
}

/** Addresses that no other run on this machine uses. */
const hosts = (count: number): ReadonlyArray<string> => {
  const network = `127.${64 + (process.pid >> 8) % 128}.${process.pid % 256}`
  return Array.from({ length: count }, (_, index) => `${network}.${index + 1}`)
}

export class NatsPods {
  readonly #places: ReadonlyMap<string, Place>
  readonly #servers = new Map<string, NatsServer>()
  /** Certificates, which stay while their pods come and go. */
  readonly #folder = mkdtempSync(join(tmpdir(), "nats-pods-"))

  constructor(replicas: number) {
    this.#places = new Map(hosts(replicas).map((host, index) => [`nats-${index}`, { host, routes: nextPort() }]))
  }

  /** The addresses of the pods, by their names. */
  get hosts(): ReadonlyMap<string, string> {
    return new Map([...this.#places].map(([name, { host }]) => [name, host]))
  }

  /** The addresses of all servers that have started so far. */
  get url(): string {
    return [...this.#servers.values()].map(({ url }) => url).join(",")
  }

  async start(pod: ApiPod, inputs: Inputs): Promise<PodProcess> {
    const { name } = pod.metadata
    const place = this.#places.get(name)
    if (place === undefined) throw new Error(`${name} is none of ${[...this.#places.keys()].join(", ")}`)
    const former = this.#servers.get(name)
    if (former !== undefined) await former.restart()
    const server = former ?? await this.#create(name, place, inputs)
    this.#servers.set(name, server)
    return new NatsProcess(server, place.host)
  }

  async remove(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.remove()))
    rmSync(this.#folder, { recursive: true })
  }

  async #create(name: string, { host, routes }: Place, { place }: Inputs): Promise<NatsServer> {
    const accounts = readFileSync(place("/etc/nats-accounts/accounts.conf"), "utf8")
    const base = readFileSync(join(project, "deploy/nats/nats.conf"), "utf8").replace(/^include .*$/m, accounts)
    const isCluster = this.#places.size > 1
    const certificates = join(this.#folder, name)
    if (isCluster) cpSync(place("/etc/nats-certs"), certificates, { recursive: true })
    // the minimal values have no TLS, and no cluster
    const tls = `tls { cert_file: "${certificates}/tls.crt", key_file: "${certificates}/tls.key" }\n`
    const others = [...this.#places.values()].map(({ host, routes }) => `nats://${host}:${routes}`).join(",")
    return NatsServer.start({
      host,
      config: `${base}\n${isCluster ? tls : ""}`,
      words: [
        ...["--name", name, "--http_port", String(monitoringPort)],
        ...isCluster
          ? ["--cluster_name", "nats", "--cluster", `nats://${host}:${routes}`, "--routes", others]
          : []
      ],
      ...isCluster ? { program: await newNatsServer() } : {}
    })
  }
}

class NatsProcess implements PodProcess {
  ready = false
  readonly port: number
  readonly exited: Promise<number | string>
  readonly #server: NatsServer
  #hasEnded = false

  constructor(server: NatsServer, host: string) {
    this.#server = server
    this.port = Number(new URL(server.url).port)
    this.exited = server.stopped.then(() => {
      this.#hasEnded = true
      this.ready = false
      return 0
    })
    void this.#probe(`http://${host}:${monitoringPort}/healthz?js-server-only=true`)
  }

  get log(): string {
    return this.#server.log
  }

  /** As the chart's hook does: clients are asked to leave first. */
  async end(): Promise<void> {
    if (!this.#hasEnded) await this.#server.retire()
  }

  async kill(): Promise<void> {
    if (!this.#hasEnded) await this.#server.kill()
  }

  async #probe(url: string): Promise<void> {
    while (!this.#hasEnded) {
      this.ready = await fetch(url).then(({ ok }) => ok && !this.#hasEnded, () => false)
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
}
