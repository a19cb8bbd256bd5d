/** Starts a worker of the speech workload. */
import * as Service from "../../shared/process/Service.ts"
import * as SpeechService from "./SpeechService.ts"

Service.run("speech", SpeechService.layer)
