// Scratch memory of the kernels.

// An uninitialised array on cache-line borders, with a line to spare so that whole lanes may be read at its end.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t count) : count_(count) {
    const int64_t bytes = (count * int64_t(sizeof(T)) + 127) / 64 * 64;
    data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
    if (!data_) throw std::runtime_error("psal: not enough memory for " + std::to_string(bytes) + " bytes");
    __builtin_memset(reinterpret_cast<char*>(data_) + bytes - 64, 0, 64);
  }
  Buffer(int64_t count, T fill) : Buffer(count) { std::fill_n(data_, count, fill); }
  Buffer(Buffer&& other) noexcept : data_(other.data_), count_(other.count_) { other.data_ = nullptr; }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() { std::free(data_); }
  T* get() { return data_; }
  const T* get() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return count_; }
  void release() { Buffer gone(std::move(*this)); }

 private:
  T* data_ = nullptr;
  int64_t count_ = 0;
};

template <typename Task>
inline void for_each_task(int64_t count, const Task& task) {
  run_tasks(
      count, [](int64_t i, const void* context) { (*static_cast<const Task*>(context))(i); }, &task);
}

// Calls body(begin, end) over ranges of [0, count) of about `grain`, which must not depend on the number of threads.
template <typename Body>
inline void for_ranges(int64_t count, int64_t grain, const Body& body) {
  for_each_task((count + grain - 1) / grain,
                [&](int64_t i) { body(i * grain, std::min(count, (i + 1) * grain)); });
}
