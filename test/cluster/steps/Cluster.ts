/** A cluster of three zones with the overlay `production`: controllers, nodes, a stand-in for their kubelets, and the guide's commands. */
import { Clock, Effect } from "effect"
import { join } from "node:path"
import { bundleServices } from "../../fixture/gateway/Bundles.ts"
import { testKey } from "../../fixture/gateway/Gateway.ts"
import { Wrong } from "../checks/Wrong.ts"
import { read } from "../control-plane/Api.ts"
import { startControllers } from "../control-plane/Controllers.ts"
import { installDefinitions, kubectl } from "../control-plane/Kubectl.ts"
import type { ApiPod } from "../kubelet/ApiPod.ts"
import { type Life, startKubelet } from "../kubelet/Kubelet.ts"
import { NatsPods } from "../kubelet/NatsPods.ts"
import { startNodes } from "../kubelet/Nodes.ts"
import { run } from "../programs/Run.ts"
import { follow } from "./Guide.ts"
import { natsChart, startIssuer } from "./StandIns.ts"

export const namespace = "model-gateway"

/** The servers of NATS. */
export const servers = 3

export interface Cluster {
  /** The pods on all nodes. */
  readonly lives: () => ReadonlyArray<Life>
  readonly nats: NatsPods
}

/** Starts all but the gateway; it ends with the scope. */
export const startCluster = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  yield* run(process.execPath, [join(import.meta.dirname, "../../../services/console/build.ts")])
  yield* startControllers
  yield* startNodes
  yield* installDefinitions
  const nats = new NatsPods(servers)
  yield* startIssuer([...nats.hosts.values()])
  const { lives } = yield* startKubelet(nats)
  return { lives, nats } satisfies Cluster
})

/** Installs the gateway as the guide says. */
export const followGuide = Effect.map(follow(natsChart(servers)), (count) => `${count} commands succeeded as written`)

/** The pods of the gateway's Deployments. */
export const services = ({ lives }: Cluster) =>
  lives().filter(({ pod: { metadata, spec } }) => metadata.namespace === namespace && spec.restartPolicy === "Always")

/** Polls until it holds; fails with what is seen after the time, in milliseconds. */
export const until = Effect.fn("until")(function*<E, R>(
  isSo: Effect.Effect<boolean, E, R>,
  seen: () => string,
  within: number
) {
  const end = (yield* Clock.currentTimeMillis) + within
  while (!(yield* isSo)) {
    if ((yield* Clock.currentTimeMillis) > end) return yield* new Wrong({ what: seen() })
    yield* Effect.sleep("100 millis")
  }
})

/** Waits until every pod that a Deployment wants is ready. */
export const untilReady = Effect.fn("untilReady")(function*(cluster: Cluster, within: number) {
  const waiting = () =>
    services(cluster).filter(({ process }) => process?.ready !== true).map(({ missed, pod, process }) =>
      `${pod.metadata.name} is not ready: ${[...missed].join(", ")} ${process?.log.slice(-300) ?? ""}`
    )
  const timeout = `--timeout=${within / 1_000}s`
  // replacements may not have been created yet
  yield* kubectl(["wait", "-n", namespace, "--for=condition=available", "deployment", "--all", timeout])
  yield* until(Effect.sync(() => waiting().length === 0), () => waiting().join("\n"), within)
})

/** Lets the test's key in, with the command that operators use, as a Job like the one that provisions. */
export const createKey = Effect.gen(function*() {
  interface Job {
    readonly spec: { readonly template: { readonly spec: ApiPod["spec"] } }
  }
  const { spec } = yield* read<Job>(`/apis/batch/v1/namespaces/${namespace}/jobs/provision`)
  const [container] = spec.template.spec.containers
  const env = [...container?.env ?? [], { name: "GATEWAY_BOOTSTRAP_KEY", value: testKey }]
  const containers = [{ ...container, name: "key", args: ["admin", "keys", "ensure", "--name", "cluster"], env }]
  const template = { spec: { ...spec.template.spec, containers } }
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "key", namespace }, spec: { template } }
  yield* kubectl(["create", "-f", "-"], JSON.stringify(job))
  yield* kubectl(["wait", "-n", namespace, "--for=condition=complete", "job/key", "--timeout=60s"])
})
