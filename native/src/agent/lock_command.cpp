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

/* Restores what a killed run has left, with the lock in hand; whoever has it already does so himself.
 *
 * Another account's lock may name any folder of the machine: that account alone restores from it. */
Value::List restored(const Value &broken, const std::string &folder, const std::string &state_folder) {
    Value::List notes;
    std::vector<std::string> folders = {state_folder};
    const Value *owner = broken.is_map() ? broken.find("owner") : nullptr;
    std::string named = owner ? owner->at("state_folder").text() : "";
    bool is_own = owner && broken.at("uid").whole() == static_cast<int64_t>(::geteuid());
    if (is_own && !named.empty() && named != folders[0]) {
        folders.push_back(named);
    } else if (!is_own && !named.empty()) {
        notes.push_back("what that run has changed, if anything, is kept in " + named +
                        "; 'perfsuite devices unlock' as the account " + broken.at("account").text() +
                        " restores it, as does its next run");
    }
    utsname told = {};
    ::uname(&told);
    Claim claim;
    claim.user = account_name(::getuid());
    claim.host = told.nodename;
    claim.run_id = "unlock-" + std::to_string(::getpid());
    claim.purpose = "perfsuite devices unlock";
    claim.lock_folder = folder;
    for (const std::string &each : folders) {
        try {
            HeldLock lock;
            lock.take(claim, each, [](const std::string &) {}, sleep_s);
            for (const std::string &line : Journal(each, "").restore_leftovers(false)) {
                notes.push_back(printable(line));
            }
        } catch (const Failure &failure) {
            if (failure.kind() == "LockedError") {
                break;
            }
            notes.push_back(printable(failure.what()));
        }
    }
    return notes;
}

Value answered(const std::vector<std::string> &words, const std::string &folder) {
    Value found;
    bool is_forced = words.size() == 2 && words[1] == "--force";
    if (words.size() == 1 && words[0] == "state") {
        found.set("lock", lock_state(folder));
        found.set("notes", Value::List());
    } else if (!words.empty() && words[0] == "break" && (words.size() == 1 || is_forced)) {
        const std::string state_folder = Places::own().state_folder();
        Value broken = broken_lock(folder, is_forced);
        Value::List notes = restored(broken, folder, state_folder);
        found.set("lock", std::move(broken));
        found.set("notes", std::move(notes));
    } else {
        throw Failure("give 'state', 'break' or 'break --force'");
    }
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
