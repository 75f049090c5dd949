/* Fibula for C++11 and later: the handles of fibula.h, freed when they go out of scope, and failures as exceptions. fibula.h describes
 * the calls; those that are not here take `get()`. */
#ifndef FIBULA_HPP
#define FIBULA_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fibula.h"

namespace fibula {
/* A failure of a call. */
class failure : public std::runtime_error {
public:
    failure(int64_t code, const fibula_error &error) : std::runtime_error(error.message), code_(code), row_(error.row) {}
    int64_t code() const noexcept { return code_; } /* FIBULA_E_... */
    uint64_t row() const noexcept { return row_; }  /* FIBULA_NO_ROW where the failure is of no row */

private:
    int64_t code_;
    uint64_t row_;
};

namespace detail {
/* Makes a call that takes an error last. */
template <typename Call> int64_t checked(Call call) {
    fibula_error error = {0, 0, FIBULA_NO_ROW, ""};
    const int64_t result = call(&error);
    if (result < 0) throw failure(result, error);
    return result;
}
struct free_handle {
    void operator()(fibula_table *table) const noexcept { fibula_table_unref(table); }
    void operator()(fibula_live *live) const noexcept { fibula_live_free(live); }
    void operator()(fibula_reader *reader) const noexcept { fibula_reader_free(reader); }
};
template <typename Handle> class owner {
public:
    Handle *get() const noexcept { return handle_.get(); }

protected:
    template <typename Make> explicit owner(Make make) {
        Handle *handle = nullptr;
        checked([&](fibula_error *error) { return make(&handle, error); });
        handle_.reset(handle);
    }
    std::unique_ptr<Handle, free_handle> handle_;
};
} // namespace detail
/* A table that does not change. */
class table : public detail::owner<fibula_table> {
public:
    static table open(const std::string &path, fibula_options options = FIBULA_OPTIONS) {
        return table([&](fibula_table **made, fibula_error *error) { return fibula_table_open(path.c_str(), &options, made, error); });
    }
    static table build(const fibula_routes *ipv4, const fibula_routes *ipv6, fibula_options options = FIBULA_OPTIONS) {
        return table([&](fibula_table **made, fibula_error *error) { return fibula_table_build(ipv4, ipv6, &options, made, error); });
    }
    void save(const std::string &path) const {
        detail::checked([&](fibula_error *error) { return fibula_table_save(get(), path.c_str(), error); });
    }
    uint32_t lookup4(uint32_t address) const noexcept { return fibula_lookup4(get(), address); }
    uint32_t lookup6(const uint8_t address[16]) const noexcept { return fibula_lookup6(get(), address); }
    std::vector<uint32_t> lookup4(const std::vector<uint32_t> &addresses) const {
        std::vector<uint32_t> ids(addresses.size());
        detail::checked([&](fibula_error *) { return fibula_lookup4_bulk(get(), addresses.data(), 0, 0, ids.data(), ids.size()); });
        return ids;
    }

private:
    friend class live;
    template <typename Make> explicit table(Make make) : owner(make) {}
};
/* A table that changes while readers look up. */
class live : public detail::owner<fibula_live> {
public:
    explicit live(fibula_options options = FIBULA_OPTIONS)
        : owner([&](fibula_live **made, fibula_error *error) { return fibula_live_new(&options, made, error); }) {}
    void set4(uint32_t address, uint8_t length, uint32_t id) {
        detail::checked([&](fibula_error *error) { return fibula_live_set4(get(), address, length, id, error); });
    }
    void set6(const uint8_t address[16], uint8_t length, uint32_t id) {
        detail::checked([&](fibula_error *error) { return fibula_live_set6(get(), address, length, id, error); });
    }
    table snapshot() const {
        return table([&](fibula_table **made, fibula_error *error) { return fibula_live_snapshot(get(), made, error); });
    }
};
/* One thread's view of a live table. */
class reader : public detail::owner<fibula_reader> {
public:
    explicit reader(const live &of) : owner([&](fibula_reader **made, fibula_error *error) { return fibula_reader_new(of.get(), made, error); }) {}
    uint32_t lookup4(uint32_t address) noexcept { return fibula_reader_lookup4(get(), address); }
    uint32_t lookup6(const uint8_t address[16]) noexcept { return fibula_reader_lookup6(get(), address); }
};
} // namespace fibula
#endif
