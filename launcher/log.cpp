#include "launcher/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace lockstep {

struct Log::Sinks {
  spdlog::logger out{"out", std::make_shared<spdlog::sinks::stdout_sink_mt>()};
  spdlog::logger err{"err", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log::Log(bool speaks, bool quiet) : sinks_(std::make_unique<Sinks>()), speaks_(speaks), quiet_(quiet) {
  for (spdlog::logger* logger : {&sinks_->out, &sinks_->err}) {
    logger->set_pattern("%v");
    logger->flush_on(spdlog::level::info);
  }
}

Log::~Log() = default;

void Log::info(std::string_view line) const {
  if (speaks_ && !quiet_) sinks_->out.info("{}", line);
}

void Log::warn(std::string_view line) const {
  if (speaks_) sinks_->err.warn("warning: {}", line);
}

void Log::result(std::string_view text) const {
  if (speaks_) sinks_->out.info("{}", text);
}

}  // namespace lockstep
