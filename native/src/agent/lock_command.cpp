#include "lock_command.h"

#include <cstdio>
#include <sys/utsname.h>
#include <unistd.h>

#include "json.h"
#include "lock.h"
#include "places.h"
#include "processes.h"
#include "restore.h"

namespace perfsuite {

namespace {

/* Restores what a killed run has left, with the lock in hand; whoever has it already does so himself. */
Value::List restored(const std::string &folder, const std::string &state_folder) {
    Value::List notes;
    utsname told = {};
    ::uname(&told);
    Claim claim;
    claim.user = account_name(::getuid());
    claim.host = told.nodename;
    claim.run_id = "unlock-" + std::to_string(::getpid());
    claim.purpose = "perfsuite devices unlock";
    claim.lock_folder = folder;
    try {
        HeldLock lock;
        lock.take(claim, state_folder, [](const std::string &) {}, sleep_s);
        notes.assign(lock.notes.begin(), lock.notes.end());
        lock.left_folders.insert(lock.left_folders.begin(), state_folder);
        for (const std::string &each : lock.left_folders) {
            for (const std::string &line : Journal(each, "").restore_leftovers()) {
                notes.push_back(printable(line));
            }
        }
    } catch (const Failure &failure) {
        if (failure.kind() != "LockedError") {
            throw;
        }
    }
    return notes;
}

Value answered(const std::vector<std::string> &words, const std::string &folder) {
    bool is_forced = words.size() == 2 && words[0] == "break" && words[1] == "--force";
    if (!is_forced && !(words.size() == 1 && (words[0] == "state" || words[0] == "break"))) {
        throw Failure("give 'state', 'break' or 'break --force'");
    }
    Value found, owner = lock_holder(folder);
    Value::List notes;
    if (words[0] == "break") {
        const std::string state_folder = Places::own().state_folder();
        if (!owner.is_nil() && !is_forced) {
            throw Failure("held by " + owner_text(owner) + "; wait until it has ended, or end it with --force");
        }
        if (!owner.is_nil()) {
            end_holder(owner, folder, sleep_s);
        }
        notes = restored(folder, state_folder);
    }
    found.set("lock", std::move(owner));
    found.set("notes", std::move(notes));
    return found;
}

} // namespace

int lock_command(const std::vector<std::string> &arguments) {
    std::vector<std::string> words;
    std::string folder;
    for (const std::string &each : arguments) {
        if (each.compare(0, 9, "--folder=") == 0) {
            folder = each.substr(9);
        } else {
            words.push_back(each);
        }
    }
    Value answer;
    try {
        answer = answered(words, folder);
    } catch (const Failure &failure) {
        answer = Value();
        answer.set("error", failure.what());
    }
    std::printf("%s\n", json_text(answer).c_str());
    return answer.find("error") ? 2 : 0;
}

} // namespace perfsuite
