# HEADWISE_ISAS: the instruction sets to compile the kernels for, weakest first; HEADWISE_FLAGS_<set>: their
# flags. "baseline" is what the compiler targets without flags: SSE2 on x86-64, NEON on 64-bit ARM.
include(CheckCXXCompilerFlag)

set(HEADWISE_ISAS baseline)
set(HEADWISE_FLAGS_baseline "")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(WIDE -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  set(HEADWISE_FLAGS_avx2 -mavx2 -mfma)
  set(HEADWISE_FLAGS_avx512 ${WIDE})
  set(HEADWISE_FLAGS_avx512bf16 ${WIDE} -mavx512bf16)
  foreach(ISA avx2 avx512 avx512bf16)
    string(REPLACE ";" " " FLAGS "${HEADWISE_FLAGS_${ISA}}")
    check_cxx_compiler_flag("${FLAGS}" HEADWISE_CAN_${ISA})
    if(HEADWISE_CAN_${ISA})
      list(APPEND HEADWISE_ISAS ${ISA})
    endif()
  endforeach()
endif()
message(STATUS "Instruction sets of the native kernel: ${HEADWISE_ISAS}")
