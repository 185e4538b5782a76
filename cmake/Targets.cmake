# What every library and program of the project is built with.
add_library(lockstep_options INTERFACE)
target_compile_features(lockstep_options INTERFACE cxx_std_20)
target_include_directories(lockstep_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
# -ffp-contract=off: an element's result must not depend on its place in a vector loop. No errno, no traps: roots and choices vectorise.
target_compile_options(lockstep_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -ffp-contract=off -fno-math-errno -fno-trapping-math>)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer>)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# A shared library of one folder: every .cpp below it.
function(lockstep_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  add_library(lockstep_${name} SHARED ${sources})
  set_target_properties(lockstep_${name} PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR} VERSION ${PROJECT_VERSION})
  target_link_libraries(lockstep_${name} PUBLIC lockstep_options)
  install(TARGETS lockstep_${name})
endfunction()

# Code that runs once a job, not once a step: optimising it costs more time in every build than it gives back. Its common headers are compiled once.
function(lockstep_not_hot target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()
