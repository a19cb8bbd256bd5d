/** The definitions of other projects' kinds that the overlays use, from these projects' Go modules. */
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import * as Cache from "./Cache.ts"
import { downloadModule, findGo } from "./Go.ts"

const sources: ReadonlyArray<readonly [module: string, file: string]> = [
  ...["scaledobjects", "scaledjobs", "triggerauthentications", "clustertriggerauthentications"].map((kinds) =>
    [Cache.kedaModule, `config/crd/bases/keda.sh_${kinds}.yaml`] as const
  ),
  ...["cloudeventsources", "clustercloudeventsources"].map((kinds) =>
    [Cache.kedaModule, `config/crd/bases/eventing.keda.sh_${kinds}.yaml`] as const
  ),
  ["sigs.k8s.io/gateway-api@v1.6.3", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
  ["github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds/cert-manager.io_certificates.yaml"],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"
  ]
]

const nameOf = (file: string): string => file.split("/").at(-1) ?? ""

/** The paths of the definitions. Fails with a `Missing` without Go, unless they are in the cache. */
export const find = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const folder = join(yield* Cache.folder, "definitions")
  if (!(yield* fs.exists(folder))) {
    const go = yield* findGo
    if (go === undefined) {
      return yield* new Cache.Missing({
        what: "Go downloads the definitions of KEDA's and others' kinds: install Go 1.26"
      })
    }
    yield* Cache.add(Effect.fnUntraced(function*(made) {
      yield* fs.makeDirectory(join(made, "definitions"))
      for (const [module, file] of sources) {
        const from = yield* downloadModule(go, module, made)
        yield* fs.copyFile(join(from, file), join(made, "definitions", nameOf(file)))
      }
    }))
  }
  return sources.map(([, file]) => join(folder, nameOf(file)))
})
