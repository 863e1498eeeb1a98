#include "model_tensors.h"

#include <array>
#include <utility>
#include <vector>

#include "failure.h"
#include "perfsuite/model_tensors.h"

namespace perfsuite {

namespace {

std::vector<const char *> kinds_in(const Value &list) {
    std::vector<const char *> kinds;
    for (const Value &kind : list.list()) {
        kinds.push_back(kind.text().c_str());
    }
    kinds.push_back(nullptr);
    return kinds;
}

} // namespace

Value model_tensors(const Library &library, const Value &plan) {
    std::array<char, 2048> complaint{};
    ps_model_tensors *model = nullptr;
    if (PS_FUNCTION(library, ps_model_tensors_open)(plan.at("header_path").text().c_str(),
                                                    kinds_in(plan.at("wanted")).data(),
                                                    kinds_in(plan.at("unwanted")).data(), &model, complaint.data(),
                                                    complaint.size()) != 0) {
        throw Failure(complaint.data(), "EngineError");
    }
    uint64_t n_rows = 0;
    const ps_model_tensor *rows = PS_FUNCTION(library, ps_model_tensors_rows)(model, &n_rows);
    Value::List told;
    for (const ps_model_tensor *row = rows; row < rows + n_rows; row++) {
        told.push_back(Value::List{row->name, Value::List(row->ne, row->ne + 4), row->is_left_out != 0});
    }
    bool is_built = PS_FUNCTION(library, ps_model_tensors_is_built)(model) != 0;
    PS_FUNCTION(library, ps_model_tensors_close)(model);
    return Value::Map{{"tensors", std::move(told)}, {"is_built", is_built}};
}

} // namespace perfsuite
