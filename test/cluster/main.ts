/**
 * `npm run cluster`: applies the manifests to a real control plane on this machine. Exits with an error if a check fails, and
 * writes a section of `test/proof.md` for each step.
 *
 * CLUSTER_STEPS (names separated by commas; default: all). It takes etcd, kube-apiserver and the others from the folder
 * KUBEBUILDER_ASSETS if they are there, or builds them once with Go, into `~/.cache`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, Effect, Layer, Ref, Schema } from "effect"
import { writeSection } from "../proof/Page.ts"
import { Outcomes, Step } from "./checks/Checks.ts"
import { ControlPlane } from "./control-plane/ControlPlane.ts"
import * as Cache from "./programs/Cache.ts"
import { textOf } from "./checks/Report.ts"
import { manifests } from "./steps/Manifests.ts"
import { pods } from "./steps/Pods.ts"
import { scaling } from "./steps/Scaling.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

/** Each step has a control plane of its own. */
const steps = { manifests, pods, scaling }

const isStep = (name: string): name is keyof typeof steps => Object.hasOwn(steps, name)

const run = Effect.gen(function*() {
  const chosen = yield* Config.String("CLUSTER_STEPS").pipe(Config.withDefault(Object.keys(steps).join(",")))
  const names = chosen.split(",").map((name) => name.trim())
  for (const name of names) {
    if (!isStep(name)) {
      return yield* new Broken({
        what: [`CLUSTER_STEPS: unknown step "${name}". Choose from ${Object.keys(steps).join(", ")}`]
      })
    }
    yield* Console.log(`\n${name}`)
    yield* steps[name].pipe(Effect.provide(ControlPlane.layer), Effect.provideService(Step, name))
  }
  const outcomes = yield* Ref.get(yield* Outcomes)
  const version = yield* Cache.version
  for (const name of names) {
    yield* writeSection({
      heading: `Cluster: ${name}`,
      command: `CLUSTER_STEPS=${name} npm run cluster`,
      text: textOf(outcomes.filter(({ step }) => step === name), version)
    })
  }
  const what = outcomes.filter(({ holds }) => !holds).map(({ seen, what }) => `${what}: ${seen}`)
  if (what.length > 0) return yield* new Broken({ what })
}).pipe(
  Effect.provide(Layer.mergeAll(Outcomes.layer, NodeServices.layer, NodeHttpClient.layerUndici))
)

NodeRuntime.runMain(run)
