/* The backends of somebody else's contexts: how they come to report the ends of their nodes. */
#include <string.h>

#include "ggml-backend.h"
#include "interposed.h"
#include "recorder_state.h"

void ps_recorder_follow_backends(ps_recorder *r, bool is_wanted) {
    if (r && (r->kind == PS_RECORDER_CALLBACK || r->kind == PS_RECORDER_EXPERTS)) {
        r->follows_backends = is_wanted;
        ps_recorder_watch_entries(r);
    }
}

void ps_recorder_only_ask(ps_recorder *r) { r->only_asks = true; }

void ps_recorder_follow(struct ggml_backend *backend) {
    ggml_backend_dev_t device = ggml_backend_get_device(backend);
    if (!device || ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) {
        return;
    }
    ggml_backend_reg_t registered = ggml_backend_dev_backend_reg(device);
    void *found = ggml_backend_reg_get_proc_address(registered, "ggml_backend_set_abort_callback");
    if (found) {
        ggml_backend_set_abort_callback_t set_callback;
        memcpy(&set_callback, &found, sizeof(set_callback));
        set_callback(backend, ps_recorder_tick, ps_hooks_watched());
    }
}
