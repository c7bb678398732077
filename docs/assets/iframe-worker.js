// The search runs in a Worker, which browsers do not start for a page from the disk: there, an iframe stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.early = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.onload = () => this.start(frame.contentWindow, url)
      document.body.append(frame)
    }

    start(inside, url) {
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = () => {
        this.tell = data => inside.dispatchEvent(new inside.MessageEvent("message", { data }))
        this.early.splice(0).forEach(this.tell)
      }
      inside.document.body.append(script)
    }

    postMessage(data) {
      this.tell ? this.tell(data) : this.early.push(data)
    }
  }
}
