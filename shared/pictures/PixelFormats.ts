/** Exports sharp restricted to pixel formats, so that it is safe for files from clients. */
import sharp from "sharp"

// excludes SVG and PDF, which can refer to other files and contain programs
sharp.block({ operation: ["VipsForeignLoad"] })
sharp.unblock({
  operation: [
    "VipsForeignLoadPng",
    "VipsForeignLoadJpeg",
    "VipsForeignLoadWebp",
    "VipsForeignLoadNsgif",
    "VipsForeignLoadHeif",
    "VipsForeignLoadTiff"
  ]
})
// requests do not share pictures, so a cache would only waste memory
sharp.cache(false)

export { default as sharp } from "sharp"
