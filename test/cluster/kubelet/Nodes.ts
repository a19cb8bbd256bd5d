/** Machines that exist only as objects: one in each of three zones, with room for every pod. */
import { DateTime, Effect, Schedule } from "effect"
import { create, patch } from "../control-plane/Api.ts"

const zones = ["a", "b", "c"]

/** The names of the nodes. */
export const names: ReadonlyArray<string> = zones.map((zone) => `node-${zone}`)

const room = { cpu: "64", memory: "256Gi", pods: "110", "ephemeral-storage": "1Ti" }

/** What a kubelet reports; the controller manager evicts the pods of a node that is silent. */
const report = Effect.fn("Nodes.report")(function*(name: string) {
  const now = DateTime.formatIso(yield* DateTime.now)
  const condition = { type: "Ready", status: "True", reason: "KubeletReady", lastHeartbeatTime: now }
  yield* patch(`/api/v1/nodes/${name}/status`, {
    status: { capacity: room, allocatable: room, conditions: [condition] }
  })
})

/** Creates the nodes, and reports them as ready until the end of the scope. */
export const startNodes = Effect.gen(function*() {
  for (const [index, zone] of zones.entries()) {
    const name = names[index] ?? ""
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone }
    yield* create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } })
    yield* report(name)
  }
  yield* Effect.forEach(names, report, { discard: true }).pipe(
    Effect.repeat(Schedule.spaced("10 seconds")),
    Effect.forkScoped
  )
})
