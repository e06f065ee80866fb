// Who grades and keeps progress: "static" is this browser. The local server gives this file with "server" in it.
document.documentElement.dataset.mode = "static";
