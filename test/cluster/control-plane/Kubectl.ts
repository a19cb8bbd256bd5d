/** kubectl as an operator uses it, with the control plane's kubeconfig. */
import { Effect, Schedule } from "effect"
import { join } from "node:path"
import * as Definitions from "../programs/Definitions.ts"
import * as Programs from "../programs/Programs.ts"
import { run } from "../programs/Run.ts"
import { type Conditioned, meets, read } from "./Api.ts"
import { ControlPlane } from "./ControlPlane.ts"

/** The environment in which programs find the control plane, and keep their caches in its folder. */
export const environment = Effect.map(
  ControlPlane,
  ({ folder, kubeconfig }) => ({ KUBECONFIG: kubeconfig, HOME: folder })
)

const command = Effect.fn("kubectl")(function*(words: ReadonlyArray<string>, input?: string) {
  const program = yield* Programs.find(["kubectl"])
  const env = yield* environment
  const options = { env, ...input === undefined ? {} : { input } }
  const { stdout } = yield* run(program("kubectl"), words, options).pipe(Effect.timeout("5 minutes"))
  return stdout
})

/** Runs a command; returns its output. A warning of the server is an error. */
export const kubectl = (words: ReadonlyArray<string>, input?: string) =>
  command(["--warnings-as-errors", ...words], input)

/** The documents of a folder below `deploy/kubernetes`, as YAML. */
export const kustomize = Effect.fn("kustomize")(function*(path: string) {
  return yield* kubectl(["kustomize", join(import.meta.dirname, "../../../deploy/kubernetes", path)])
})

/** Waits until the API server serves every defined kind. `kubectl wait` fails for a definition without any condition yet. */
const untilEstablished = read<{ readonly items: ReadonlyArray<Conditioned> }>(
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
).pipe(
  Effect.map(({ items }) => items.every((item) => meets(item, "Established"))),
  Effect.repeat({ until: (areAll) => areAll, schedule: Schedule.spaced("100 millis") }),
  Effect.timeout("30 seconds")
)

/** Installs the definitions of other projects' kinds; returns how many. */
export const installDefinitions = Effect.gen(function*() {
  const files = yield* Definitions.find
  // the server warns of formats that it does not know
  yield* command(["apply", "--server-side", ...files.flatMap((file) => ["-f", file])])
  yield* untilEstablished
  return files.length
})
