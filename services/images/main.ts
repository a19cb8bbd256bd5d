/** Starts a worker of the images workload. */
import * as Service from "../../shared/process/Service.ts"
import * as ImagesService from "./ImagesService.ts"

Service.run("images", ImagesService.layer)
