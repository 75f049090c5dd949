/* The same as lookup.c and live.c in C++: c++ table.cc $(pkg-config --cflags --libs fibula) */
#include <fibula.hpp>

#include <iostream>
#include <utility>

int main() {
    const uint32_t addresses[] = {0xc0000200, 0xc0000280}; /* 192.0.2.0/24, 192.0.2.128/25 */
    const uint8_t lengths[] = {24, 25};
    const uint32_t ids[] = {1, 2};
    const fibula_routes ipv4 = {addresses, lengths, ids, 2};
    fibula::table table = fibula::table::build(&ipv4, nullptr);
    fibula::table moved = std::move(table);
    for (uint32_t id : moved.lookup4({0xc0000201, 0xc00002c8, 0x0a000001})) std::cout << id << '\n';

    fibula::live live;
    fibula::reader reader(live);
    live.set4(0x0a000000, 8, 7);
    std::cout << reader.lookup4(0x0a000001) << ' ' << live.snapshot().lookup4(0x0a000001) << '\n';
    try {
        live.set4(0x0a000001, 8, 7);
    } catch (const fibula::failure &failure) {
        std::cout << "code " << failure.code() << ": " << failure.what() << '\n';
    }
}
