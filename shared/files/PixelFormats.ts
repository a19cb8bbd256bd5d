/** sharp, made safe for what clients send: it reads nothing but formats of pixels. */
import sharp from "sharp"

// no SVG or PDF: those can refer to other files, and are programs rather than pictures
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
// what one request has loaded is of no use to the next
sharp.cache(false)

export { default as sharp } from "sharp"
