/** The controller manager and the scheduler of a control plane. */
import { Effect } from "effect"
import { join } from "node:path"
import * as Programs from "../programs/Programs.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { start } from "./Server.ts"

/** Starts both; they end with the scope. */
export const startControllers = Effect.gen(function*() {
  const { access, client, folder, kubeconfig } = yield* ControlPlane
  const program = yield* Programs.find(["kube-controller-manager", "kube-scheduler"])
  const common = [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--secure-port=0"]
  yield* start({
    name: "kube-controller-manager",
    program: program("kube-controller-manager"),
    words: [
      ...common,
      `--service-account-private-key-file=${join(folder, "accounts.key")}`,
      `--root-ca-file=${access.authority}`
    ],
    // it creates this account in each namespace
    ready: client.get("/api/v1/namespaces/default/serviceaccounts/default"),
    within: "60 seconds"
  })
  yield* start({
    name: "kube-scheduler",
    program: program("kube-scheduler"),
    words: common,
    ready: Effect.void,
    within: "60 seconds"
  })
})
