/** Starts the ingress: the process that faces clients. */
import * as Service from "../../shared/process/Service.ts"
import * as Ingress from "./Ingress.ts"

Service.run("ingress", Ingress.layer)
