/**
 * `nats keys FOLDER`: an identity for each service on NATS, and what a server has to know of them.
 *
 * The folder is the truth: `<service>.nk` holds a seed, `<service>.old.nk` the one before it while it is being changed, and
 * from these `accounts.conf` is written, for the server, and `kustomization.yaml`, by which `kubectl apply -k` hands each
 * service its own.
 */
import { Console, Effect, FileSystem, Path, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type NatsService, natsServices } from "../../shared/bus/Access.ts"
import { generate, publicKeyOf } from "../../shared/bus/Credentials.ts"
import { type PublicKeys, renderAccounts } from "./NatsAccounts.ts"
import { failPlainly } from "./Plainly.ts"

const current = (service: NatsService): string => `${service}.nk`
const former = (service: NatsService): string => `${service}.old.nk`

/** Secrets and a ConfigMap under the names that the manifests expect. */
const kustomization =
  `# Made by \`admin nats keys\`: \`kubectl apply -k\` of this folder makes what the manifests refer to.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
generatorOptions:
  disableNameSuffixHash: true
configMapGenerator:
  - name: nats-accounts
    namespace: nats
    files: [accounts.conf]
secretGenerator:
${
    natsServices.map((service) =>
      `  - name: nats-${service}\n    namespace: model-gateway\n    files: [seed=${current(service)}]`
    ).join("\n")
  }
`

const keys = Command.make(
  "keys",
  {
    folder: Argument.String("folder").pipe(Argument.withDescription("Where the seeds are kept, readable by you alone")),
    rotate: Flag.Boolean("rotate").pipe(
      Flag.withDescription(
        "Make new keys; the old ones stay good until `--retire`, and until then this makes no newer ones"
      ),
      Flag.withDefault(false)
    ),
    retire: Flag.Boolean("retire").pipe(
      Flag.withDescription("Forget the keys that `--rotate` has replaced"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function*({ folder, retire, rotate }) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = (name: string) => path.join(folder, name)
    const seedIn = (name: string) => Effect.map(fs.readFileString(file(name)), Redacted.make<string>)
    yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
    const keysOf = Effect.fnUntraced(function*(service: NatsService) {
      if (retire) yield* fs.remove(file(former(service)), { force: true })
      // a change that has begun goes on: services may still use what the first go has replaced
      const isChanging = yield* fs.exists(file(former(service)))
      if (rotate && !isChanging && (yield* fs.exists(file(current(service))))) {
        yield* fs.rename(file(current(service)), file(former(service)))
      }
      if (!(yield* fs.exists(file(current(service))))) {
        const seed = yield* generate
        yield* fs.writeFileString(file(current(service)), Redacted.value(seed), { mode: 0o600, flag: "wx" })
      }
      const seeds = [yield* seedIn(current(service))]
      if (yield* fs.exists(file(former(service)))) seeds.push(yield* seedIn(former(service)))
      return [service, yield* Effect.forEach(seeds, publicKeyOf)] as const
    })
    const all: PublicKeys = new Map(yield* Effect.forEach(natsServices, keysOf))
    yield* fs.writeFileString(file("accounts.conf"), renderAccounts(all))
    yield* fs.writeFileString(file("kustomization.yaml"), kustomization)
    for (const [service, its] of all) yield* Console.log(`${service}: ${its.join(", ")}`)
  }, failPlainly)
).pipe(Command.withDescription("Make what is missing of the services' keys, and the server's accounts from them"))

export const nats = Command.make("nats").pipe(
  Command.withDescription("The services' identities on NATS"),
  Command.withSubcommands([keys])
)
