/* Before anything is shown: what works only with scripts may be seen. */
"use strict";
document.documentElement.classList.add("js");
