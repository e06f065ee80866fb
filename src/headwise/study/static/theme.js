// The reader's choice of light or dark, set before anything is drawn. A classic script, loaded in the head.
(() => {
  'use strict';
  const KEY = 'headwise-theme';
  const root = document.documentElement;
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const read = () => {
    try {
      const kept = localStorage.getItem(KEY);
      return kept === 'dark' || kept === 'light' ? kept : null;
    } catch {
      return null; // storage is off: the system's choice holds
    }
  };
  const apply = () => {
    root.dataset.theme = read() || (dark.matches ? 'dark' : 'light');
    const button = document.querySelector('[data-theme-button]');
    if (button) button.setAttribute('aria-pressed', String(root.dataset.theme === 'dark'));
  };
  apply();
  dark.addEventListener('change', apply);
  window.addEventListener('storage', (event) => { if (event.key === KEY) apply(); });
  document.addEventListener('DOMContentLoaded', apply);
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element && event.target.closest('[data-theme-button]');
    if (!button) return;
    const next = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem(KEY, next);
      apply();
    } catch {
      root.dataset.theme = next; // for this page alone
      button.setAttribute('aria-pressed', String(next === 'dark'));
    }
  });
})();
